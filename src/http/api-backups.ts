import { z } from 'zod'
import type { Backup as BackupRecord } from '../storage/backup.ts'
import { iso } from './api-views.ts'
import { type Operation, ok, operation } from './operation.ts'

/** What the API needs for keeping the installation safe. */
export interface BackupFlows {
  backups: { folder: string; make: (actor: string) => Promise<BackupRecord>; list: () => BackupRecord[] }
  keys: { rotate: (actor: string) => Promise<{ before: string; after: string }> }
}

const Backup = z.object({
  file: z.string().meta({ description: 'Name in the folder of the backups' }),
  bytes: z.int().min(0),
  readable: z.boolean().meta({ description: 'False for a file that is no backup of this kind' }),
  madeAt: z
    .string()
    .nullable()
    .meta({ format: 'date-time', examples: ['2026-03-01T02:20:00.000Z'] }),
  epoch: z.int().nullable().meta({ description: 'One more than the database had been restored' }),
  stores: z.array(z.string()).meta({ description: 'Permanent ids of the stores that it holds orders of' }),
  keyName: z
    .string()
    .nullable()
    .meta({ description: 'The key-encryption key that it needs', examples: ['3f9a01c2'] }),
})
const BackupList = z.object({ folder: z.string(), items: z.array(Backup), next: z.null() })
const Made = z.object({ folder: z.string(), backup: Backup })
const Rotated = z.object({
  before: z.string().meta({ description: 'Name of the key-encryption key before' }),
  after: z.string().meta({ description: 'Name of the one that the service needs from its next start on' }),
})

/** Backups, and the key that the database is sealed under. */
export function backupOperations({ flows }: { flows: BackupFlows }): Operation[] {
  return [
    operation({
      ...{ name: 'listBackups', method: 'get', path: '/backups', allowed: { people: 'viewer' }, answer: BackupList },
      ...{ summary: 'Backups that are kept, newest first.', success: { 200: 'All of them' } },
      handle: async () => ok({ folder: flows.backups.folder, items: flows.backups.list().map(backupView), next: null }),
    }),
    operation({
      ...{ name: 'makeBackup', method: 'post', path: '/backups', allowed: { people: 'operator' }, answer: Made },
      summary: 'Make a backup now: copied, checked, sealed, and on the disk when this is answered.',
      success: { 201: 'Made' },
      failures: { 409: 'one is being made', 503: 'none could be made; nothing of the try is left' },
      handle: async ({ caller }) => ({
        status: 201,
        data: { folder: flows.backups.folder, backup: backupView(await flows.backups.make(caller.actor)) },
      }),
    }),
    operation({
      ...{ name: 'rotateKeys', method: 'post', path: '/keys/rotate', allowed: { people: 'admin' }, answer: Rotated },
      summary: 'Put the database under the next key-encryption key, which the service reads from its own secrets.',
      success: { 200: 'Rotated; the service needs the new key from its next start on' },
      failures: { 409: 'there is no next key, or it is the one in use' },
      handle: async ({ caller }) => ok(await flows.keys.rotate(caller.actor)),
    }),
  ]
}

const backupView = ({ file, bytes, header }: BackupRecord): z.infer<typeof Backup> => ({
  ...{ file, bytes, readable: header !== undefined, stores: header?.stores ?? [] },
  madeAt: header ? iso(header.madeAt) : null,
  ...{ epoch: header?.epoch ?? null, keyName: header?.keyName ?? null },
})
