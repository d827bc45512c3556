import { and, eq, exists, gt, isNull, or } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import type { Change, Database } from './database.ts'
import { webhooks } from './schema.ts'
import { jsonSetting } from './settings.ts'
import { build, change } from './statement.ts'
import { insertInto, rowsBy } from './table.ts'

export type Webhook = typeof webhooks.$inferSelect

export const allWebhooks = rowsBy(webhooks, [], webhooks.createdAt, webhooks.id)

export const insertWebhook = insertInto(webhooks)

const later = alias(webhooks, 'later')

/** Retires a webhook. Stale when it is retired already or does not exist, or when no later webhook would be left to take over. */
export const markRetired = change(1, ({ id, createdAt }: Pick<Webhook, 'id' | 'createdAt'>, now: number) =>
  build
    .update(webhooks)
    .set({ retiredAt: now })
    .where(
      and(
        eq(webhooks.id, id),
        isNull(webhooks.retiredAt),
        exists(
          build
            .select({ id: later.id })
            .from(later)
            .where(
              and(
                isNull(later.retiredAt),
                or(gt(later.createdAt, createdAt), and(eq(later.createdAt, createdAt), gt(later.id, id))),
              ),
            ),
        ),
      ),
    ),
)

/** Webhooks at the supplier that lead here, and whose secret we do not hold. Instants in epoch milliseconds. */
export interface UnheldWebhooks {
  webhooks: { id: string; url: string; seenAt: number; replacedBy: string | null }[]
  /** When a webhook was last replaced automatically; 0: never. */
  replacedAt: number
}

const unheldSetting = jsonSetting<UnheldWebhooks>('unheld_webhooks')

export const unheldWebhooks = async (db: Database): Promise<UnheldWebhooks> =>
  (await unheldSetting.read(db)) ?? { webhooks: [], replacedAt: 0 }

export const putUnheldWebhooks = (seen: UnheldWebhooks, now: number): Change => unheldSetting.put(seen, now)
