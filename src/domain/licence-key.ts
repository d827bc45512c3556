/** What a licence key is: text in one form, by which it is stored, compared and delivered. */

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
