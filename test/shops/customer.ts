/**
 * A customer with a link to the page of keys, whose browser runs no JavaScript: it opens the page, and sends the form of each line.
 * What is read there is read from the HTML over HTTP.
 */
import { unescaped } from './html.ts'

export interface PageRead {
  /** HTTP status of the answer to the link, and of those to the forms on it. */
  statuses: number[]
  /** Licence keys by the id of their line, as a click shows them. */
  lines: Map<string, string[]>
  /** Licence keys that stand on the page before any click. */
  unasked: string[]
  /** The page says that keys are still to come. */
  isWaiting: boolean
}

const keysIn = (html: string): string[] =>
  [...html.matchAll(/<code translate="no">(.*?)<\/code>/gs)].map(([, text = '']) => unescaped(text))
const formsIn = (html: string): string[] =>
  [...html.matchAll(/<form method="post"><button [^>]*name="line" value="([^"]*)"/g)].map(([, id = '']) =>
    unescaped(id),
  )

/** @throws TypeError where no server answers at the link */
export async function readPage(link: string): Promise<PageRead> {
  const page = await fetch(link)
  const html = await page.text()
  const read: PageRead = {
    statuses: [page.status],
    lines: new Map(),
    unasked: keysIn(html),
    isWaiting: html.includes('class="state late"'),
  }
  for (const line of formsIn(html)) {
    const shown = await fetch(link, { method: 'POST', body: new URLSearchParams({ line }) })
    read.statuses.push(shown.status)
    read.lines.set(line, keysIn(await shown.text()))
  }
  return read
}

/** The pages that these links lead to, each once: what follows a `#` is for the reader alone. */
export const pagesOf = (links: Iterable<string>): string[] => [
  ...new Set([...links].map((link) => link.split('#')[0] ?? '')),
]
