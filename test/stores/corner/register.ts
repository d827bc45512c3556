/**
 * Loaded with `--import` before the program: its list of kinds has one more. With QUAYSIDE_TERMINAL, the program takes its pipes for
 * a terminal.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { withEdit } from '../../campaigns/mistakes/list.ts'

const file = 'stores/kinds.ts'
const kinds = new URL(`../../../src/${file}`, import.meta.url)
const listed = withEdit(readFileSync(kinds, 'utf8'), {
  file,
  find: 'shopify] as const',
  replace: 'shopify, corner] as const',
})
const source = `import { corner } from '${new URL('kind.ts', import.meta.url)}'\n${listed}`

registerHooks({
  load: (url, context, next) => ({ ...next(url, context), ...(url === kinds.href && { source }) }),
})

if (process.env.QUAYSIDE_TERMINAL) {
  for (const stream of [process.stdin, process.stdout]) Object.defineProperty(stream, 'isTTY', { value: true })
}
