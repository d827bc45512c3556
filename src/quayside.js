#!/usr/bin/env -S node --max-semi-space-size=16 --expose-gc
/**
 * The entry, in plain JavaScript that old versions of Node can read too. In a clone it hands over to `main.ts`, in a package to
 * the JavaScript that was made of it: Node strips no types below `node_modules`. In an old Node, the entry of a package starts
 * the Node that came with the package; that of a clone says which version is needed.
 */
import { spawn } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readFileSync } from 'node:fs'
import * as modules from 'node:module'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import './quick-imports.js'

/**
 * Returns whether this Node strips types by itself, and is new enough for every dependency. Node 22 strips types from 22.18
 * on, Node 23 from 23.6 on. 22.19 is the oldest version that every dependency takes.
 *
 * @param {string} version such as `24.21.0`
 */
function runsTypes(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > 23) return true
  return major === 23 ? minor >= 6 : major === 22 && minor >= 19
}

/**
 * Keeps compiled code in a folder from one start to the next, which halves the time of a command. Node runs whatever it finds
 * in the folder, so the folder must belong to this user alone. Without such a folder each start compiles again.
 */
function keepCompiledCode() {
  const { env } = process
  if (env.NODE_COMPILE_CACHE || env.NODE_DISABLE_COMPILE_CACHE) return
  const caches = env.XDG_CACHE_HOME || join(homedir(), '.cache')
  const folder = join(caches, 'quayside')
  try {
    // The folders are made one at a time: with `recursive`, Node never returns from making a folder below /proc.
    for (const one of [caches, folder]) if (!existsSync(one)) mkdirSync(one, { mode: 0o700 })
    const { mode, uid } = lstatSync(folder)
    const isOurs = (mode & 0o170077) === 0o040000 && uid === process.getuid?.()
    if (isOurs) modules.enableCompileCache?.(folder)
  } catch {
    // If the home folder cannot be written to, the start is only slower.
  }
}

const sources = new URL('./main.ts', import.meta.url)
const isPackage = !existsSync(sources)
const [asked = '', ...more] = process.argv.slice(2)

if (runsTypes(process.versions.node) && /^(--version|-V|version)$/.test(asked) && more.length === 0) {
  // `--version` does not load the program, which would take five times as long.
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  process.stdout.write(`${JSON.parse(text).version}\n`)
} else if (runsTypes(process.versions.node)) {
  keepCompiledCode()
  import((isPackage ? new URL('../dist/main.js', import.meta.url) : sources).href).catch(fail)
} else if (isPackage && ownNode() !== undefined) {
  startOn(/** @type {string} */ (ownNode()))
} else if (isPackage) {
  process.stderr.write(`quayside: needs Node 22.19 or newer, and this is ${process.versions.node}\n`)
  process.exitCode = 1
} else {
  const folder = fileURLToPath(new URL('../', import.meta.url))
  process.stderr.write(
    `quayside: needs Node 22.19 or newer, and this is ${process.versions.node}; ` +
      `run \`npm ci\` in ${folder}, which brings the right one, then use \`npm start\` or \`npx quayside\`\n`,
  )
  process.exitCode = 1
}

/** Returns the path of the Node that npm installed with this package; undefined on a machine for which there is none. */
function ownNode() {
  try {
    const name = `node-${process.platform}-${process.arch}`
    return join(dirname(modules.createRequire(import.meta.url).resolve(`${name}/package.json`)), 'bin', 'node')
  } catch {
    return undefined
  }
}

/**
 * Runs this command once more on another Node, passes signals on to it, and ends as it ends.
 *
 * @param {string} node the path of the other Node
 */
function startOn(node) {
  const child = spawn(
    node,
    ['--max-semi-space-size=16', '--expose-gc', fileURLToPath(import.meta.url), ...process.argv.slice(2)],
    {
      stdio: 'inherit',
    },
  )
  // A terminal sends SIGINT to both processes. The other one ends by itself.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  child.on('error', fail)
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 1)
  })
}

/** @param {unknown} error */
function fail(error) {
  const absent = error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
  const hint = absent ? ': a dependency is missing, run `npm ci`' : ''
  process.stderr.write(`quayside: cannot start${hint}\n${error instanceof Error ? error.stack : String(error)}\n`)
  process.exitCode = 1
}
