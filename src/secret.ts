import { inspect } from 'node:util'

/**
 * A value that must not be shown: API keys, signing secrets, key material.
 *
 * Printing, logging, templating or serialising it gives `[secret]`; only `reveal` gives the text.
 */
export class Secret {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  /** The text itself. Call it where the value leaves the process or enters a cipher, nowhere else. */
  reveal(): string {
    return this.#text
  }

  toString(): string {
    return '[secret]'
  }

  toJSON(): string {
    return '[secret]'
  }

  [inspect.custom](): string {
    return '[secret]'
  }
}
