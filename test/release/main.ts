/**
 * `npm run release -- 0.2.0 [--dry-run]`: makes a release in this clone: commit, tag and artefacts. It pushes and publishes
 * nothing, and prints what is left to a person. What fails midway leaves the clone as it was.
 *
 * `npm run release -- --artefacts <folder>` makes the artefacts of the version that is checked out, and nothing else.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { breaksBetween } from './api-breaks.ts'
import { makeArtefacts, NOTES } from './artefacts.ts'
import { released, unreleasedPart } from './changelog.ts'
import { lastOf, refusals } from './refusals.ts'
import { presentApi, releasedApi, writeReleasedApi } from './released-api.ts'
import { squashFolder, unreleased } from './squash.ts'

const USAGE = `usage: npm run release -- 0.2.0 [--dry-run]
       npm run release -- --artefacts <folder>
`
const root = path.resolve(import.meta.dirname, '../..')
const MIGRATIONS = 'src/storage/migrations'
const migrations = pathToFileURL(`${path.join(root, MIGRATIONS)}/`)
const NEIGHBOURS = ['npx', '--no-install', 'vitest', 'run', 'test/storage/neighbours.test.ts']

/** Why there is no release, for people. */
class Refusal extends Error {}

const say = (text: string): void => {
  process.stdout.write(`${text}\n`)
}
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')
const git = (...given: string[]): string =>
  execFileSync('git', given, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '')

function main(): void {
  const { version, isDry, folder } = given()
  if (folder !== undefined) {
    for (const file of makeArtefacts(root, folder)) say(path.join(folder, file))
  } else if (version === undefined) {
    process.stderr.write(USAGE)
    process.exitCode = 2
  } else {
    release(version, isDry)
  }
}

function given() {
  try {
    const options = { 'dry-run': { type: 'boolean', default: false }, artefacts: { type: 'string' } } as const
    const { values, positionals } = parseArgs({ options, allowPositionals: true })
    const version = positionals.length === 1 ? positionals[0] : undefined
    return { version, isDry: values['dry-run'], folder: values.artefacts && path.resolve(values.artefacts) }
  } catch {
    return { version: undefined, isDry: false, folder: undefined }
  }
}

function release(version: string, isDry: boolean): void {
  const tags = linesOf(git('tag', '--list', 'v*'))
  const last = lastOf(tags)
  const { version: present, repository } = JSON.parse(read('package.json'))
  const reasons = refusals({
    version,
    present,
    branch: git('branch', '--show-current'),
    changed: linesOf(git('status', '--porcelain')),
    tags,
    changes: unreleasedPart(read('CHANGELOG.md')),
  })
  if (reasons.length > 0) throw refused(version, reasons)
  say(`Quayside ${version}, after ${last ?? 'no release so far'}`)

  step('types and lint', ['npm', 'run', 'check'], 'put right what it names')
  const neighbours = 'a release may only add: see "Files, names and words" in CONTRIBUTING.md'
  step('the statements of the last release run on the tables of this version', NEIGHBOURS, neighbours)
  const breaks = breaksBetween(releasedApi(), presentApi())
  if (breaks.length > 0) {
    throw refused(version, [...breaks, 'these break clients of the last release: the API may only add, see "Releases"'])
  }
  say('  ok  clients of the last release go on with the API')

  const before = last === undefined ? [] : linesOf(git('ls-tree', '--name-only', `v${last}:${MIGRATIONS}`))
  const tag = `v${version}`
  const folder = path.join('data/releases', tag)
  if (isDry) {
    sayWhatItWouldDo({ version, tag, folder, news: unreleased(migrations, before) })
    return
  }
  const head = git('rev-parse', 'HEAD')
  try {
    write(version, before)
    for (const file of makeArtefacts(root, path.join(root, folder))) say(`  ok  ${path.join(folder, file)}`)
    git('add', '--all')
    git('commit', '--quiet', '--message', `Release ${version}`)
    git('tag', '--annotate', tag, '--message', `Quayside ${version}`)
  } catch (error) {
    // Nothing but this command has committed, or changed the files, since it found them as they were committed.
    git('reset', '--hard', '--quiet', head)
    git('clean', '-fdq', MIGRATIONS)
    rmSync(path.join(root, folder), { recursive: true, force: true })
    const why = error instanceof Refusal ? error.message : `there is no ${tag}: ${String(error)}`
    throw new Refusal(`${why}\nThe files are as they were: npm run release -- ${version} begins again.`)
  }
  sayWhatIsLeft({ version, tag, folder, hasRepository: repository !== undefined })
}

/** Writes what belongs to the commit of a release. */
function write(version: string, before: string[]): void {
  const { gone, made } = squashFolder(migrations, before, version)
  say(
    `  ok  ${made ? `${gone.length} migrations that were never released are one: ${made}` : 'no migrations to put into one'}`,
  )
  step(
    'the version',
    ['npm', 'version', version, '--no-git-tag-version', '--allow-same-version', '--ignore-scripts'],
    'read what npm says',
  )
  const date = new Date().toISOString().slice(0, 'yyyy-mm-dd'.length)
  writeFileSync(path.join(root, 'CHANGELOG.md'), released(read('CHANGELOG.md'), version, date))
  say('  ok  the changelog')
  step('the snapshot of statements, taken of this version', ['npm', 'run', 'release-snapshot'], 'read what fails')
  writeReleasedApi()
  say('  ok  the document of the API')
}

/** Runs a command of the release, and shows what it printed when it fails. */
function step(what: string, [command = '', ...args]: string[], todo: string): void {
  try {
    execFileSync(command, args, { cwd: root, encoding: 'utf8', stdio: 'pipe', maxBuffer: 64 * 1024 * 1024 })
    say(`  ok  ${what}`)
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as { stdout?: string; stderr?: string; message: string }
    const printed = `${stdout}${stderr}`.trim() || message
    throw new Refusal(`${printed}\n\nnot ok  ${what}: ${todo} (${[command, ...args].join(' ')})`)
  }
}

const refused = (version: string, reasons: string[]): Refusal =>
  new Refusal(`${version} is not released:\n${reasons.map((reason) => `  - ${reason}`).join('\n')}`)

interface Release {
  version: string
  tag: string
  folder: string
}

function sayWhatItWouldDo({ version, tag, folder, news }: Release & { news: string[] }): void {
  say(`
It would, and has changed nothing:
  - ${news.length > 1 ? `put ${news[0]} to ${news.at(-1)} into one migration` : 'leave the migrations as they are'}
  - write ${version} into package.json and package-lock.json
  - make "## Unreleased" of CHANGELOG.md "## ${version} - <today>"
  - take the statements and the API of this version for those of the release
  - make package, SBOM, OpenAPI document and SHA256SUMS in ${folder}
  - commit "Release ${version}", and tag it ${tag}`)
}

function sayWhatIsLeft({ version, tag, folder, hasRepository }: Release & { hasRepository: boolean }): void {
  const once = [
    ...(hasRepository
      ? []
      : [
          `package.json has no "repository", without which npm refuses a package with provenance. Take the release
   back, set it to the public address, commit, and release again:
     git tag --delete ${tag} && git reset --hard HEAD~1
     npm pkg set repository.type=git repository.url=git+<address>.git`,
        ]),
    ...(git('remote').split('\n').includes('origin')
      ? []
      : [
          `This clone has no "origin":
     git remote add origin <address>`,
        ]),
  ]
  const steps = [
    ...once,
    `Read what was made:
     git show ${tag}
     (cd ${folder} && sha256sum --check SHA256SUMS)`,
    `Push commit and tag together. The tag starts .github/workflows/release.yml, which
   tests, publishes the package with provenance, builds and signs the images for amd64 and arm64, and
   makes the page of the release with SBOM and checksums. The registry of npm must know the workflow as
   a trusted publisher, or the repository needs the secret NPM_TOKEN:
     git push --atomic origin main ${tag}
     gh run watch`,
    `Compare what it has made with what was made here; what differs was made by another npm:
     gh release download ${tag} --pattern SHA256SUMS --output - | diff ${folder}/SHA256SUMS -
     npm view quayside@${version} dist
     docker buildx imagetools inspect ghcr.io/<owner>/<repository>:${version}`,
    `Announce it with the words of the changelog:
     ${folder}/${NOTES}`,
  ]
  say(`
Quayside ${version} is committed and tagged in this clone. Nothing was pushed or published.
What is left to you:

${steps.map((text, index) => `${index + 1}. ${text}`).join('\n\n')}

Before the push, this takes it back:
     git tag --delete ${tag} && git reset --hard HEAD~1`)
}

// Ctrl-C ends the command that is running, and what it had begun is taken back.
process.on('SIGINT', () => undefined)
try {
  main()
} catch (error) {
  if (!(error instanceof Refusal)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
