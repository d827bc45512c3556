/** Words of a dialect that the sandbox does not serve: it refuses each by its name, instead of answering as no supplier does. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { type Dialect, putAt, valueAt } from '../../src/dialect/dialect.ts'
import { startSandbox } from '../../src/sandbox/server.ts'
import { run, temporaryFolder } from '../support/cli-run.ts'
import { standard } from '../support/dialect-pair.ts'
import { wordy, wordyDialect } from '../support/dialect-wordy.ts'

const WORDS = [
  ...['paths', 'auth', 'constantHeaders', 'orderBody', 'orderAnswer', 'idempotency', 'keys'],
  ...['signature.string', 'signature.mac', 'signature.secret', 'event.header'],
]

test.each(WORDS)('`%s` is refused by its name', async (word) => {
  const dialect = structuredClone(standard) as Dialect & Record<string, unknown>
  putAt(dialect, word, valueAt(wordyDialect, word))
  await expect(startSandbox({ dialect, apiKey: 'k' })).rejects.toMatchObject({
    code: 'invalid',
    message: `the sandbox does not serve \`${word}\` of the dialect reseller-v1.1: it speaks the Reseller API v1.1 alone`,
  })
})

test('a dialect that states what is usual is served', async () => {
  const { paging, signature } = standard
  const dialect: Dialect = {
    ...standard,
    idempotency: 'header',
    orderAnswer: 'order',
    paging: { ...paging, kind: 'page' },
    signature: { ...signature, string: '{timestamp}.{body}', mac: 'sha256', secret: 'utf8' },
  }
  const sandbox = await startSandbox({ dialect, apiKey: 'k', automatic: false })
  await sandbox.close()
})

test('`sandbox` and the story end as for a bad input, and name every such word at once', async () => {
  const file = path.join(temporaryFolder(), 'wordy.json')
  writeFileSync(file, JSON.stringify(wordy))
  const { exitCode, stderr, stdout } = await run(['sandbox', '--dialect', file, '--port', '0'])
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  for (const word of WORDS) expect(stderr).toContain(`\`${word}\``)
  expect(stderr.split('the sandbox does not serve')).toHaveLength(2)

  const story = path.join(import.meta.dirname, '../shops/story.ts')
  const ended = spawnSync(process.execPath, [story, '--dialect', path.relative(DIALECTS, file).replace(/\.json$/, '')])
  expect({ status: ended.status, stderr: String(ended.stderr) }).toEqual({ status: 2, stderr: '' })
  expect(String(ended.stdout)).toContain('the sandbox does not serve')
})

const DIALECTS = path.join(import.meta.dirname, '../../config/dialects')
