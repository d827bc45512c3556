/** The fixed answers and deliveries under test/fixtures/dialect, written by hand: no code of ours made them. */
import { readFileSync } from 'node:fs'

export const fixtureFile = (name: string): string => new URL(`../fixtures/dialect/${name}`, import.meta.url).pathname

export const fixture = (name: string): unknown => JSON.parse(readFileSync(fixtureFile(name), 'utf8'))

/** A delivery as it was captured: headers by name, the body in base64. */
export interface CapturedFile<T> {
  secret: string
  deliveries: ({ name: string; headers: Record<string, string>; body: string } & T)[]
}

/** Node's `headersDistinct`. */
export const distinct = (headers: Record<string, string>): Record<string, string[]> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
