/** HTML as a reader sees it: the signs of its text, and where its links lead. */

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

export const escaped = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (sign) => `&${Object.keys(ENTITIES).find((name) => ENTITIES[name] === sign)};`)

export const unescaped = (html: string): string =>
  html.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name] ?? '')

/** Addresses of the links that a reader sees. */
export const linksIn = (html: string): string[] =>
  [...html.matchAll(/<a [^>]*href="([^"]*)"/g)].map(([, url = '']) => unescaped(url))

/** What a reader sees, line by line. A link is its text, and its address in brackets. */
export const textOf = (html: string): string =>
  unescaped(
    html
      .replaceAll(/<br ?\/?>\n?/g, '\n')
      .replaceAll(/<a [^>]*href="([^"]*)"[^>]*>(.*?)<\/a>/g, '$2 ($1)')
      .replaceAll(/<\/?[a-z][^>]*>/g, ''),
  )
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('\n')
