/** What a supplier writes for people: kept and shown, and hence without anything that may be a licence key. */

const REMOVED = '[removed]'

/** A text as short as this is in many sentences by chance, and no licence key. */
const KEY_MIN_LENGTH = 4

/** Letters and digits, with dashes between them. */
const TOKEN = /[\p{L}\p{N}]+(?:-[\p{L}\p{N}]+)*/gu

/**
 * Takes licence keys out of a text: those that are known, in either case, and every word that may be one.
 *
 * Which form the keys of a supplier have is not known, so that an identifier in a sentence is taken out too.
 *
 * @param keys the licence keys of the order that the text is about
 */
export function withoutKeys(text: string, keys: readonly string[] = []): string {
  const known = keys
    .filter((key) => key.length >= KEY_MIN_LENGTH)
    .map((key) => key.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  // The longest first: one key may begin as another does.
  const longest = known.sort((a, b) => b.length - a.length)
  const clean = longest.length === 0 ? text : text.replaceAll(new RegExp(longest.join('|'), 'giu'), REMOVED)
  return clean.replaceAll(TOKEN, (token) => (mayBeKey(token) ? REMOVED : token))
}

/**
 * Three groups of four or more with a dash between them, in capitals or with a digit; or sixteen characters that are
 * digits, or letters and digits.
 */
function mayBeKey(token: string): boolean {
  const groups = token.split('-')
  const isWord = !/\p{N}/u.test(token) && /\p{Ll}/u.test(token)
  if (isWord) return false
  if (groups.length >= 3 && groups.every((group) => group.length >= 4)) return true
  // Of a word with dashes, a single part must be as long: `2-factor-authentication` is none.
  const long = /\p{Ll}/u.test(token) ? groups : [token]
  return long.some((part) => part.length >= 16 && /\p{N}/u.test(part))
}
