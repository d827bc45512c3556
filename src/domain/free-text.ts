/**
 * Makes the supplier's texts for people fit to be stored and shown: without licence keys, as plain text, not too long. Makes what
 * people type fit to be looked for.
 */

const REMOVED = '[removed]'

/** Shorter keys are not looked for: a text so short occurs in sentences by chance. */
const KEY_MIN_LENGTH = 4

/** Letters and digits, with dashes between them. */
const TOKEN = /[\p{L}\p{N}]+(?:-[\p{L}\p{N}]+)*/gu

/**
 * Removes licence keys from a text: the known keys, in upper or lower case, and every word that may be a key.
 *
 * The form of a supplier's keys is not known, so other identifiers in a sentence are removed too.
 *
 * @param keys the licence keys of the order that the text is about
 */
export function withoutKeys(text: string, keys: readonly string[] = []): string {
  const known = keys
    .filter((key) => key.length >= KEY_MIN_LENGTH && key.length <= text.length)
    .map((key) => key.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  // The longest key comes first, because a key may be the beginning of another key.
  const longest = known.sort((a, b) => b.length - a.length)
  const clean = longest.length === 0 ? text : text.replaceAll(new RegExp(longest.join('|'), 'giu'), REMOVED)
  return clean.replaceAll(TOKEN, (token) => (mayBeKey(token) ? REMOVED : token))
}

/** Returns what a person typed into a field of one line: without control characters and what is invisible at its ends, so long at most. */
export const typedText = (text: string, lengthMax = 200): string =>
  [...text.replaceAll(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+/gu, ' ').replace(/^[\p{Cf}\p{Z}]+/u, '')]
    .slice(0, lengthMax)
    .join('')
    .replace(/[\p{Cf}\p{Z}]+$/u, '')

/** Whether each word of a text begins a word of these names. Letters may be small or not. */
export function beginsWords(names: string, text: string): boolean {
  const [known, typed] = [names, text].map((one) => one.toLowerCase().split(/[\s#]+/)) as [string[], string[]]
  return typed.every((word) => known.some((one) => one.startsWith(word)))
}

/** Returns the hit that a text means: the only one that is called exactly so, or else the only one; undefined where there are several. */
export function meant<H extends { name: string; otherName?: string | null }>(
  hits: readonly H[],
  text: string,
): H | undefined {
  const plain = (name: string) => name.toLowerCase().replace(/^#+/, '')
  const exact = hits.filter(({ name, otherName }) => [name, otherName ?? name].map(plain).includes(plain(text)))
  const [one, ...others] = exact.length > 0 ? exact : hits
  return others.length > 0 ? undefined : one
}

/** Writes ` and leads to https://…` for a redirect, without what may be secret. @param from the origin that answered */
export function leadsTo(location: unknown, from: string): string {
  const url = typeof location === 'string' ? URL.parse(location, from) : null
  return url === null ? '' : ` and leads to ${url.origin.slice(0, 200)}`
}

/**
 * Whether a word looks like a key. One form has three or more groups between dashes, each of four or more characters, in capitals
 * or with a digit somewhere. The other form has sixteen or more characters, and a digit among them.
 */
function mayBeKey(token: string): boolean {
  const groups = token.split('-')
  const isWord = !/\p{N}/u.test(token) && /\p{Ll}/u.test(token)
  if (isWord) return false
  if (groups.length >= 3 && groups.every((group) => group.length >= 4)) return true
  // In a word with small letters, one group alone must have sixteen characters: `2-factor-authentication` is no key.
  const long = /\p{Ll}/u.test(token) ? groups : [token]
  return long.some((part) => part.length >= 16 && /\p{N}/u.test(part))
}

/** Finds a tag, or a comment or declaration that has no tag inside. The time for a long text grows only with its length. */
const TAG = /<(?:[!?][^<>]*|(\/?)([a-z][a-z0-9]*)\b[^<>]*)>/gi

/** Tags that begin or end a line. */
const LINE = /^(?:br|p|div|h[1-6]|[uod]l|li|d[td]|t(?:able|r)|hr|section|article|blockquote|pre)$/
/** Tags whose contents are not shown. */
const HIDDEN = /^(?:script|style)$/

const ENTITY = /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,6}));/gi
const NAMED: Record<string, string> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  ndash: '–',
  mdash: '—',
  hellip: '…',
  bull: '•',
  reg: '®',
  trade: '™',
  copy: '©',
  euro: '€',
}

/**
 * Returns a text as a page would show it: without HTML tags, with entities as characters, and with at most one empty line in a
 * row. A text that is no HTML keeps its words.
 *
 * @param max the longest length of the result; a longer text is cut to its beginning
 */
export function plainText(text: string, max: number): string {
  const shown = withoutTags(text)
    .replaceAll(ENTITY, (entity, decimal, hex, name) => characterOf(decimal, hex, name) ?? entity)
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/[^\P{Cc}\n\t]/gu, '')
    .replaceAll(/[^\S\n]+/g, ' ')
    .replaceAll(/ ?\n ?/g, '\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .toWellFormed()
    .trim()
  return beginning(shown, max).trimEnd()
}

function withoutTags(text: string): string {
  let kept = ''
  let from = 0
  let hidden: string | undefined
  for (const { 0: tag, 1: closes, 2: named, index } of text.matchAll(TAG)) {
    const name = named?.toLowerCase() ?? ''
    if (hidden === undefined) kept += text.slice(from, index) + (LINE.test(name) ? '\n' : '')
    if (closes === '/' && name === hidden) hidden = undefined
    else if (hidden === undefined && closes === '' && HIDDEN.test(name)) hidden = name
    from = index + tag.length
  }
  return hidden === undefined ? kept + text.slice(from) : kept
}

function characterOf(decimal?: string, hex?: string, name?: string): string | undefined {
  if (name !== undefined) return Object.hasOwn(NAMED, name) ? NAMED[name] : undefined
  const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
  return code <= 0x10ffff ? String.fromCodePoint(code) : undefined
}

/** The first `max` characters of a text, without half of a surrogate pair at its end. */
export const beginning = (text: string, max: number): string =>
  text.length <= max ? text : text.slice(0, max).replace(/[\ud800-\udbff]$/, '')
