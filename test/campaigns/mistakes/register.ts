/**
 * Makes one mistake in the program that is about to run:
 * `QUAYSIDE_MISTAKE=random-key node --import ./test/campaigns/mistakes/register.ts src/quayside.js serve`. Without the variable
 * nothing is changed.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { mistakeNamed, withEdit } from './list.ts'

const name = process.env.QUAYSIDE_MISTAKE
if (name) seed(name)

/** @throws Error before anything is loaded when the mistake does not fit the program any more */
function seed(name: string): void {
  const texts = new Map<string, string>()
  for (const edit of mistakeNamed(name).edits) {
    const url = new URL(`../../../src/${edit.file}`, import.meta.url)
    texts.set(url.href, withEdit(texts.get(url.href) ?? readFileSync(url, 'utf8'), edit))
  }
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      const source = texts.get(url)
      return source === undefined ? loaded : { ...loaded, source }
    },
  })
}
