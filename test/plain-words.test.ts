/** Words that Quayside's code, tests and pages do not use: each has a plainer one, or the name of the actor. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '..')
const sources = ['src', 'test'].flatMap((folder) =>
  readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.relative(root, path.join(parentPath, name)))
    // What suppliers and stores say, and the words themselves.
    .filter((file) => !file.startsWith('test/fixtures/') && file !== 'test/plain-words.test.ts'),
)
const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...filesIn('docs')]

const AVOIDED =
  /\b(told|tellings?|owe[sd]?|doors?|hypothes[ie]s|lets? go|mend(s|ed)?|harbour|whoever|nobody|somebody|anew|for ever|mapping|unclaimed)\b/i
/** Money that is owed back is called so. */
const ALLOWED = /\bowed back\b/i

function filesIn(folder: string): string[] {
  const files = readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
  const found = files.filter((file) => file.isFile())
  return found.map(({ parentPath, name }) => path.relative(root, path.join(parentPath, name)))
}

test.each([...sources, ...pages])('%s is in plain words', (file) => {
  const lines = readFileSync(path.join(root, file), 'utf8').split('\n')
  // The words of a name count one by one: `oweAlert`, `is_told`. In a test, a string of one word is data.
  const text = (line: string) => (file.startsWith('test/') ? line.replaceAll(/'[\w-]+'/g, '') : line)
  const inWords = (line: string) =>
    text(line)
      .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
      .replaceAll('_', ' ')
  const found = lines.filter((line) => AVOIDED.test(inWords(line)) && !ALLOWED.test(inWords(line)))
  expect(found).toEqual([])
})
