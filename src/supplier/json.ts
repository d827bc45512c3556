/* JSON as suppliers write it: numeric ids are read exactly, with any number of digits. */

/**
 * The digits of a whole number that a JavaScript number cannot hold exactly.
 *
 * Only ids are read from it (`asId`): it is not accepted where a number is used for calculation.
 */
export class LongInteger {
  readonly #digits: string
  constructor(digits: string) {
    this.#digits = digits
  }
  toString(): string {
    return this.#digits
  }
  toJSON(): string {
    return this.#digits
  }
}

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

const keepDigits: Reviver = (_, value, { source }) =>
  typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && /^-?\d+$/.test(source)
    ? new LongInteger(source)
    : value

/** Parses a body as UTF-8 JSON; undefined when it is neither. A byte order mark is removed. */
export function readJson(body: Buffer): unknown {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    // Numbers up to 2^53 have at most 16 digits; a document without longer runs is parsed twice as fast.
    return /\d{16}/.test(text) ? JSON.parse(text, keepDigits as Parameters<typeof JSON.parse>[1]) : JSON.parse(text)
  } catch {
    return undefined
  }
}
