import { asc } from 'drizzle-orm'
import { build } from './builder.ts'
import type { Change } from './database.ts'
import { webhooks } from './schema.ts'

export type Webhook = typeof webhooks.$inferSelect

export const allWebhooks = () => build.select().from(webhooks).orderBy(asc(webhooks.createdAt), asc(webhooks.id))

export const insertWebhook = (row: typeof webhooks.$inferInsert): Change => ({
  statement: build.insert(webhooks).values(row),
  rows: 1,
})
