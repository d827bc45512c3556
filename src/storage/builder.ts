import { drizzle } from 'drizzle-orm/better-sqlite3'

/**
 * The query builder over no connection: table modules write statements with it, and only an engine runs them.
 *
 * `build.select().from(offers)` is data until it is given to `Database.query` or `Database.commit`.
 */
export const build = drizzle.mock()
