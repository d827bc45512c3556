/**
 * Makes `dist`, the JavaScript of the published package, from the sources: the compiler's own output, the files that are no
 * TypeScript, and the types of `quayside/callbacks`. npm runs it before it packs.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../..')
const dist = path.join(root, 'dist')
const compile = (...options: string[]) =>
  execFileSync(path.join(root, 'node_modules/.bin/tsc'), options, { cwd: root, stdio: 'inherit' })

rmSync(dist, { recursive: true, force: true })
compile('-p', 'tsconfig.package.json')
// One file, without a dependency: its types need those of no other file.
const ofBackends = ['--declaration', '--emitDeclarationOnly', '--removeComments', 'false', '--outDir', 'dist']
compile('--ignoreConfig', 'src/callbacks.ts', '--module', 'nodenext', '--types', 'node', ...ofBackends)
for (const file of globSync('src/**/*.{sql,css,svg,js}', { cwd: root })) {
  const isEntry = path.dirname(file) === 'src'
  if (!isEntry) cpSync(path.join(root, file), path.join(dist, path.relative('src', file)))
}
// An import that still names a source would fail only when it is reached.
for (const file of globSync('**/*.js', { cwd: dist })) {
  const text = readFileSync(path.join(dist, file), 'utf8')
  if (/from '\.[^']*\.ts'|import\('\.[^']*\.ts'\)/.test(text)) throw new Error(`${file} imports a source`)
}
