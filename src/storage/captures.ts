import { asc, eq } from 'drizzle-orm'
import { build } from './builder.ts'
import type { Change } from './database.ts'
import { captures } from './schema.ts'

export type Capture = typeof captures.$inferSelect

/** All that are kept, at most ten, without what they hold. */
export const listCaptures = () =>
  build
    .select({ id: captures.id, path: captures.path, reason: captures.reason, receivedAt: captures.receivedAt })
    .from(captures)
    .orderBy(asc(captures.receivedAt), asc(captures.id))

export const captureById = (id: string) => build.select().from(captures).where(eq(captures.id, id))

export const insertCapture = (row: Capture): Change => ({ statement: build.insert(captures).values(row), rows: 1 })

export const deleteCaptures = (): Change => ({ statement: build.delete(captures), rows: 'any' })
