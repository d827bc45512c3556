/** Finds secrets in raw bytes, however they were written down. */

/** What must not be found: its name, and the secret as text or bytes. */
export interface Secrets {
  [name: string]: string | Buffer
}

/** Bytes of a secret that are looked for: its middle, so that a part of it and one without its prefix are found too. */
const CORE_BYTES = 16

/**
 * Prepares a search for many secrets at once: as UTF-8 and UTF-16, in hex of either case, in base64 and base64url at any
 * offset, in a URL and reversed.
 *
 * @returns a function that names what it finds in some bytes, each with the way in which it was written
 */
export function finderOf(secrets: Secrets): (haystack: Buffer | string) => string[] {
  const needles = Object.entries(secrets).flatMap(([name, secret]) =>
    spellings(coreOf(Buffer.from(secret))).map(([form, bytes]) => ({ what: `${name} as ${form}`, bytes })),
  )
  // Four bytes from the middle of each lead to it; beginnings are often alike.
  const byKey = Map.groupBy(needles, ({ bytes }) => bytes.readUInt32BE(middleOf(bytes)))
  return (haystack) => {
    const bytes = Buffer.from(haystack)
    const found = new Set<string>()
    let key = 0
    for (let end = 0; end < bytes.length; end += 1) {
      key = ((key << 8) | (bytes[end] as number)) >>> 0
      for (const needle of byKey.get(key) ?? []) {
        const start = end - 3 - middleOf(needle.bytes)
        if (start >= 0 && bytes.subarray(start, start + needle.bytes.length).equals(needle.bytes))
          found.add(needle.what)
      }
    }
    return [...found].sort()
  }
}

function coreOf(secret: Buffer): Buffer {
  const start = Math.max(0, Math.floor((secret.length - CORE_BYTES) / 2))
  return secret.subarray(start, start + CORE_BYTES)
}

function spellings(core: Buffer): [form: string, bytes: Buffer][] {
  const text = core.toString('latin1')
  const hex = core.toString('hex')
  const forms: [string, string | Buffer][] = [
    ['it is', core],
    ['UTF-16', Buffer.from(text, 'utf16le')],
    ['hex', hex],
    ['upper-case hex', hex.toUpperCase()],
    ['URL', hex.replace(/../g, '%$&')],
    ['reversed text', Buffer.from(core).reverse()],
    ...base64At(core, 'base64'),
    ...base64At(core, 'base64url'),
  ]
  return forms.map(([form, bytes]) => [form, Buffer.from(bytes)])
}

/** How it reads inside longer base64, which depends on where it begins in a group of three bytes. */
const base64At = (core: Buffer, encoding: 'base64' | 'base64url'): [string, string][] =>
  [0, 1, 2].map((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), core])
      .toString(encoding)
      .replace(/=+$/, '')
    // The first and last characters carry bits of the neighbours as well.
    return [
      `${encoding} at ${offset}`,
      text.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + core.length) * 8) / 6)),
    ]
  })

const middleOf = (bytes: Buffer): number => Math.floor((bytes.length - 4) / 2)
