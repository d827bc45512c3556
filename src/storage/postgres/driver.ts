/** The driver of PostgreSQL, which only those install whose database is on a server. */
import { readFileSync } from 'node:fs'
import { Failure } from '../../errors.ts'

/** @throws Failure `invalid` where the driver is not installed */
export const { Client, Pool } = await import('pg').then(({ default: driver }) => driver, refuse)

function refuse(cause: NodeJS.ErrnoException): never {
  if (cause.code !== 'ERR_MODULE_NOT_FOUND') throw cause
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
  const { pg } = (JSON.parse(text) as { peerDependencies: { pg: string } }).peerDependencies
  const advice = `run \`npm install pg@${pg}\` where Quayside is installed`
  throw new Failure('invalid', `the database is on a PostgreSQL server, and its driver is not installed: ${advice}`, {
    cause,
  })
}
