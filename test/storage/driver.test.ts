/** An installation without the driver of PostgreSQL, which npm leaves to those who need it. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const source = new URL('../../src/storage/postgres/open.ts', import.meta.url).href
const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
const { devDependencies, peerDependencies } = JSON.parse(manifest) as Record<string, Record<string, string>>

/** Makes Node answer as it does where the package is not installed. */
const withoutDriver = `
  import { registerHooks } from 'node:module'
  registerHooks({
    resolve(name, context, next) {
      if (name === 'pg') throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
      return next(name, context)
    },
  })
`

test('says how to install the driver, in the version that is tested', async () => {
  const said = `import(${JSON.stringify(source)}).then(() => console.log('loaded'), ({ message }) => console.log(message))`
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...['--import', `data:text/javascript,${encodeURIComponent(withoutDriver)}`],
    ...['--input-type=module', '--eval', said],
  ])
  expect(stdout.trim()).toBe(
    `the database is on a PostgreSQL server, and its driver is not installed: run \`npm install pg@${peerDependencies?.pg}\` where Quayside is installed`,
  )
  expect(devDependencies?.pg).toBe(peerDependencies?.pg)
})
