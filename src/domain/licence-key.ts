/** What a licence key is: text in one form, by which it is stored, compared and delivered; or an address, a picture, a file, a pair. */
import { createHash } from 'node:crypto'

/** What a key of a supplier may be. `image`: PNG, JPEG, GIF or WebP; `file`: any other; both come in base64. */
export const keyTypes = ['text', 'url', 'image', 'file'] as const
export type KeyType = (typeof keyTypes)[number]
/** What a stored key may be. `pair`: two texts with what each is called, one on each line, such as `Serial: …` and `PIN: …`. */
export const storedKeyTypes = [...keyTypes, 'pair'] as const
export type StoredKeyType = (typeof storedKeyTypes)[number]

/** A longer text is a file or a certificate, and no key that a person types. */
const LENGTH_MAX = 512

/** The first bytes of pictures, documents and archives, with one character for each byte. */
const FILES = [
  ...['\x89PNG', '\xff\xd8\xff', 'GIF87a', 'GIF89a', 'II*\0', 'MM\0*', '\0\0\x01\0', '<svg', '<?xml'],
  ...['%PDF', 'PK\x03\x04', '\x1f\x8b\x08', 'Rar!\x1a', '7z\xbc\xaf'],
]
const isFile = (bytes: string): boolean =>
  FILES.some((file) => bytes.startsWith(file)) ||
  (bytes.startsWith('RIFF') && bytes.slice(8, 12) === 'WEBP') ||
  (bytes.startsWith('BM') && bytes.slice(6, 10) === '\0\0\0\0')

/**
 * Returns the normal form of a key: every line ends in `\n`, with no blanks before it and none at the ends of the text. Shops and
 * suppliers change nothing else, so two texts with one normal form are the same key.
 */
export const normalKey = (text: string): string =>
  text
    .split(/\r\n?|\n/)
    .map((line) => line.trimEnd())
    .join('\n')
    .trim()

/** Whether a key in its normal form is text that a customer can use: not empty, not too long, and no file, plain or in base64. */
export function isTextKey(key: string): boolean {
  if (key === '' || key.length > LENGTH_MAX || /^data:[^,]*,/i.test(key) || isFile(key)) return false
  const base64 = key.replaceAll(/\s/g, '').replaceAll('-', '+').replaceAll('_', '/')
  return !/^[A-Za-z0-9+/]{4,}={0,2}$/.test(base64) || !isFile(decoded(base64))
}

function decoded(base64: string): string {
  try {
    return atob(base64.slice(0, 64))
  } catch {
    return ''
  }
}

/** Whether a key cannot be written as text: customers get it on their page of keys alone. */
export const needsPage = ({ type }: { type?: StoredKeyType | undefined }): boolean =>
  type === 'image' || type === 'file'

/** The most bytes of a picture or a file. */
const CONTENT_MAX = 1024 * 1024
const ADDRESS_MAX = 2_000

/** Reads a key of a type as it came: an address as it is, a content in base64 without blanks. `seen`: what is wrong with it. */
export function readKey(type: KeyType, came: string): { text: string } | { seen: string } {
  if (came.trim() === '') return { seen: 'an empty text' }
  if (type === 'text') return { text: came }
  if (type === 'url') {
    const text = came.trim()
    const isAddress = text.length <= ADDRESS_MAX && /^https?:\/\/[^\s\p{C}]+$/iu.test(text) && URL.canParse(text)
    return isAddress ? { text } : { seen: 'a text that is no http or https address' }
  }
  const text = came.replace(/^data:[^,]{0,200};base64,/i, '').replaceAll(/\s+/g, '')
  if (text.length > Math.ceil(CONTENT_MAX / 3) * 4) return { seen: 'more than 1 MB' }
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length % 4 !== 0) return { seen: 'a text that is no base64' }
  if (type === 'image' && !contentOf(text).isImage) return { seen: 'base64 of no PNG, JPEG, GIF or WebP picture' }
  return { text }
}

/** Says what a content in base64 is by its first bytes: the media type, and the ending of a name for it. */
export function contentOf(base64: string): { type: string; ending: string; isImage: boolean } {
  const bytes = decoded(base64)
  const ending = ENDINGS.find(([start]) => start.test(bytes))?.[1] ?? 'bin'
  const isImage = ['png', 'jpeg', 'gif', 'webp'].includes(ending)
  return { type: isImage ? `image/${ending}` : 'application/octet-stream', ending, isImage }
}
const ENDINGS: [start: RegExp, ending: string][] = [
  [/^\x89PNG\r\n/, 'png'],
  [/^\xff\xd8\xff/, 'jpeg'],
  [/^GIF8[79]a/, 'gif'],
  [/^RIFF.{4}WEBP/s, 'webp'],
  [/^%PDF-/, 'pdf'],
  [/^PK/, 'zip'],
]

/** Writes a pair as one text. The parts have one line each. */
export const pairText = (labels: readonly string[], texts: readonly string[]): string =>
  labels.map((label, index) => `${label}: ${texts[index]}`).join('\n')

/** Reads the parts of a pair again, with what each is called. */
export const partsOfPair = (pair: string) =>
  pair.split('\n').map((line) => {
    const at = line.indexOf(': ')
    return { label: line.slice(0, at), text: line.slice(at + 2) }
  })

/** Returns the texts of a key that no message may have in it. */
export const secretsOf = (type: StoredKeyType | undefined, text: string): string[] =>
  type === 'pair' ? partsOfPair(text).map((part) => part.text) : [text]

/** Returns the text by which a key is known as the same key: of a pair the parts alone, whatever they are called. */
export const sameKeyText = (type: StoredKeyType | undefined, key: string): string =>
  type === 'pair' ? secretsOf(type, key).join('\n') : key

/**
 * The mark of a licence key, which a store keeps in place of the key where its customers get a link. It tells nothing of the key,
 * and is the same after a lost database, so that a repeat finds what was handed over.
 *
 * @param ordinal the number of the key in its purchase, from 1
 */
export const markOfKey = (externalOrderId: string, ordinal: number): string =>
  `qk-${createHash('sha256').update(`${externalOrderId} ${ordinal}`).digest('base64url').slice(0, 22)}`

/** Whether a text is the mark of a licence key, and no key. */
export const isMark = (text: string): boolean => /^qk-[\w-]{22}$/.test(text)
