/**
 * Makes `dist`, the JavaScript of the published package, from the sources: the compiler's own output, the files that are no
 * TypeScript, and the types of `quayside/callbacks`. npm runs it before it packs.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../..')
const dist = path.join(root, 'dist')
const compile = (...options: string[]) =>
  execFileSync(path.join(root, 'node_modules/.bin/tsc'), options, { cwd: root, stdio: 'inherit' })

rmSync(dist, { recursive: true, force: true })
compile('-p', 'tsconfig.package.json')
// One file, without a dependency: its types need those of no other file.
const ofBackends = [
  '--declaration',
  '--emitDeclarationOnly',
  '--removeComments',
  'false',
  '--outDir',
  'dist/stores/backend',
]
compile('--ignoreConfig', 'src/stores/backend/callbacks.ts', '--module', 'nodenext', '--types', 'node', ...ofBackends)
for (const file of globSync('src/**/*.{sql,css,svg,js}', { cwd: root })) {
  const isEntry = path.dirname(file) === 'src'
  if (!isEntry) cpSync(path.join(root, file), path.join(dist, path.relative('src', file)))
}
// The compiler rewrites imports, and leaves the addresses of threads as they are.
for (const file of globSync('**/*.js', { cwd: dist })) {
  const text = readFileSync(path.join(dist, file), 'utf8')
  // Of a source that has types alone nothing is left, and nothing imports it.
  if (text === 'export {};\n') {
    rmSync(path.join(dist, file))
    continue
  }
  const own = text.replaceAll(/new URL\('(\.\/[\w-]+)\.ts', import\.meta\.url\)/g, "new URL('$1.js', import.meta.url)")
  if (/['`]\.{1,2}\/[^'`]*\.ts['`]/.test(own)) throw new Error(`${file} names a source`)
  if (own !== text) writeFileSync(path.join(dist, file), own)
}
