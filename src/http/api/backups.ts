import { z } from 'zod'
import type { Backup as BackupRecord } from '../../backup/backup.ts'
import { type ApiContext, admin, created, ok, operation, operator, viewer } from '../operation.ts'
import { component, count, maybeAt, view, words } from './views.ts'

const Backup = view(
  component('Backup', {
    file: z.string().describe('Name in the folder of the backups'),
    bytes: count,
    readable: z.boolean().describe('False for a file that is no backup of this kind'),
    madeAt: maybeAt,
    epoch: z.int().nullable().describe('1 for a database that was never restored; one more for each restore'),
    stores: z.array(z.string()).describe('Permanent ids of the stores that it holds orders of'),
    keyName: words.meta({ description: 'The key-encryption key that it needs', examples: ['3f9a01c2'] }),
  }),
  ({ file, bytes, header }: BackupRecord) => ({
    file,
    bytes,
    readable: header !== undefined,
    stores: header?.stores ?? [],
    madeAt: header?.madeAt ?? null,
    epoch: header?.epoch ?? null,
    keyName: header?.keyName ?? null,
  }),
)
const BackupList = z.object({ folder: z.string(), items: z.array(Backup), next: z.null() })
const Made = z.object({ folder: z.string(), backup: Backup })
const Rotated = z.object({
  before: z.string().describe('Name of the previous key-encryption key'),
  after: z.string().describe('Name of the key that the service needs from its next start on'),
})

export function backupOperations({ backups, keys }: ApiContext) {
  return {
    listBackups: operation({
      route: 'GET /backups',
      allowed: viewer,
      answer: BackupList,
      summary: 'The backups, newest first.',
      success: { 200: 'All of them' },
      failures: { 409: 'the database is on a server, whose operator backs it up' },
      handle: async () => ok({ folder: backups.folder, items: backups.list(), next: null }),
    }),
    makeBackup: operation({
      route: 'POST /backups',
      allowed: operator,
      answer: Made,
      summary: 'Make a backup now: copied, checked, encrypted, and on the disk before the answer.',
      success: { 201: 'Made' },
      failures: { 409: 'another backup is being made', 503: 'none could be made; no file is left' },
      handle: async ({ caller }) => created({ folder: backups.folder, backup: await backups.make(caller.actor) }),
    }),
    rotateKeys: operation({
      route: 'POST /keys/rotate',
      needsWorker: true,
      allowed: admin,
      answer: Rotated,
      summary: 'Rotate to the next key-encryption key, which the service reads from its own secrets.',
      success: { 200: 'Rotated; the service needs the new key from its next start on' },
      failures: { 409: 'there is no next key, or it is the one in use' },
      handle: async ({ caller }) => ok(await keys.rotate(caller.actor)),
    }),
  }
}
