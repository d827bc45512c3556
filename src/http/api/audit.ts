import { z } from 'zod'
import { listAudit } from '../../storage/evidence.ts'
import { auditAction, auditActor, auditSubject, paging } from '../input.ts'
import { type ApiContext, ok, operation } from '../operation.ts'
import { at, byId, page, pageOf, words } from './views.ts'

const Entry = z
  .object({
    id: z.string(),
    at,
    actor: z.string().meta({ description: 'Who did it: a name, with its session or token', examples: ['anna (01k…)'] }),
    action: z.string().meta({ examples: ['purchase.release'] }),
    subject: z.string().meta({ description: 'What it was done to: an id, or a word such as `buying`' }),
    detail: words.meta({ description: 'The reason that was given, or what changed' }),
  })
  .meta({ id: 'AuditEntry' })
export type AuditEntryView = z.output<typeof Entry>

/** What people and stores did. Entries are added and never changed. */
export function auditOperations({ ordering: { db } }: Pick<ApiContext, 'ordering'>) {
  return [
    operation({
      name: 'listAudit',
      method: 'get',
      path: '/audit',
      allowed: { people: 'viewer' },
      summary: 'What people and stores did, newest first.',
      query: { ...paging, actor: auditActor, action: auditAction, subject: auditSubject },
      answer: page(Entry),
      success: { 200: 'A page of entries' },
      async handle({ query: { limit, ...filter } }) {
        const rows = await db.query(listAudit({ ...filter, limit: limit + 1 }))
        return ok(pageOf(rows, limit, byId))
      },
    }),
  ]
}
