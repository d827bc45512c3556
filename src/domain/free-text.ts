/** The supplier's texts for people are stored and shown: every word that may be a licence key is removed first. */

const REMOVED = '[removed]'

/** A shorter text occurs in sentences by chance and is no licence key. */
const KEY_MIN_LENGTH = 4

/** Letters and digits, with dashes between them. */
const TOKEN = /[\p{L}\p{N}]+(?:-[\p{L}\p{N}]+)*/gu

/**
 * Removes licence keys from a text: the known ones, in either case, and every word that may be one.
 *
 * The form of a supplier's keys is not known, so other identifiers in a sentence are removed too.
 *
 * @param keys the licence keys of the order that the text is about
 */
export function withoutKeys(text: string, keys: readonly string[] = []): string {
  const known = keys
    .filter((key) => key.length >= KEY_MIN_LENGTH)
    .map((key) => key.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  // The longest first: one key may be the beginning of another.
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
  // In a word with dashes one part must have this length: `2-factor-authentication` is no key.
  const long = /\p{Ll}/u.test(token) ? groups : [token]
  return long.some((part) => part.length >= 16 && /\p{N}/u.test(part))
}
