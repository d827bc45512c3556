import { z } from 'zod'
import { auditActors, listAudit } from '../../storage/evidence.ts'
import { auditAction, auditActor, auditSubject } from '../input.ts'
import { type ApiContext, ok, operation, viewer } from '../operation.ts'
import { listOperation } from './list-operation.ts'
import { at, component, words } from './views.ts'

const Entry = component('AuditEntry', {
  id: z.string(),
  at,
  actor: z.string().meta({ description: 'Who did it: a name, with its session or token', examples: ['anna (01k…)'] }),
  action: z.string().meta({ examples: ['purchase.release'] }),
  subject: z.string().describe('What it was done to: an id, or a word such as `buying`'),
  detail: words.describe('The reason that was given, or what changed'),
})

/** More names than people and stores have. */
const ACTORS_MAX = 200

/** The operations that list what people and stores did. Entries are added and never changed. */
export function auditOperations({ ordering: { db } }: ApiContext) {
  return {
    listAudit: listOperation({
      route: 'GET /audit',
      allowed: viewer,
      summary: 'What people and stores did, newest first.',
      filters: { actor: auditActor, action: auditAction, subject: auditSubject },
      item: Entry,
      success: { 200: 'A page of entries' },
      db,
      read: listAudit,
    }),
    listActors: operation({
      route: 'GET /audit/actors',
      allowed: viewer,
      summary: `Who is named in the audit, who did something last comes first. At most ${ACTORS_MAX} names.`,
      answer: z.object({
        items: z.array(z.object({ name: z.string(), lastAt: at.describe('When it last did something') })),
      }),
      success: { 200: 'The names' },
      handle: async () => ok({ items: await db.query(auditActors(ACTORS_MAX)) }),
    }),
  }
}
