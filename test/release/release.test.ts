/** `npm run release`, in a clone of this version that may be thrown away. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { partOf } from './changelog.ts'

const root = path.join(import.meta.dirname, '../..')
/** Two runs of the statements and a package: a quarter of a minute on a machine that does nothing else. */
const RELEASE_MS = 300_000
const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: .ci/run runs it)'

describe.runIf(runs)(`a release${needs}`, () => {
  const folder = path.join(tmpdir(), `quayside-release-${process.pid}`)
  const clone = path.join(folder, 'clone')
  const database = path.join(folder, 'before.db')
  const artefacts = path.join(clone, 'data/releases/v0.2.0')
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(QUAYSIDE_|VITEST|NODE_OPTIONS|TEST$)/.test(name)),
  )
  const git = (...given: string[]) => execFileSync('git', given, { cwd: clone, encoding: 'utf8' }).trim()
  const read = (file: string) => readFileSync(path.join(clone, file), 'utf8')
  /** Types and lint of these files are checked by every `npm test`: here it counts that the release asks, and heeds the answer. */
  const setCheck = (command: string) => {
    const manifest = JSON.parse(read('package.json'))
    manifest.scripts.check = command
    writeFileSync(path.join(clone, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
  }
  const migrations = () => readdirSync(path.join(clone, 'src/storage/migrations'))
  const release = async (...given: string[]) => {
    const child = spawn('npm', ['run', '--silent', 'release', '--', ...given], { cwd: clone, env })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += String(chunk)))
    const [status] = await once(child, 'close')
    return { status: status as number | null, said }
  }
  /** Opens a database as the program of the clone does, and closes it. */
  const open = (file: string) => {
    const script = `const { openDatabase } = await import('./src/storage/sqlite/open.ts')
      const database = openDatabase({ file: ${JSON.stringify(file)}, now: Date.now })
      await database.close()`
    return spawnSync(process.execPath, ['--input-type=module', '--eval', script], { cwd: clone, env, encoding: 'utf8' })
  }

  beforeAll(() => {
    // What is in the working tree, whether it is committed or not, as the only commit of a new repository.
    execFileSync('git', ['init', '--quiet', '--initial-branch=main', clone])
    const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
    for (const file of files.toString().split('\0')) {
      if (file !== '' && existsSync(path.join(root, file))) cpSync(path.join(root, file), path.join(clone, file))
    }
    symlinkSync(path.join(root, 'node_modules'), path.join(clone, 'node_modules'))
    writeFileSync(path.join(clone, '.git/info/exclude'), 'node_modules\n')
    git('config', 'user.name', 'A maintainer')
    git('config', 'user.email', 'maintainer@example.com')
    writeFileSync(path.join(clone, 'CHANGELOG.md'), '# Changelog\n\n## Unreleased\n\n- Something that users notice.\n')
    setCheck('node --version')
    git('add', '--all')
    git('commit', '--quiet', '--message', 'Before the release')
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('is refused with what to do, and changes nothing', async () => {
    writeFileSync(path.join(clone, 'left.txt'), '')
    git('switch', '--quiet', '--create', 'other')
    expect(await release('0.0.9')).toEqual({
      status: 1,
      said: `0.0.9 is not released:
  - 0.0.9 is too low, as package.json has 0.1.0: choose a higher one
  - the branch is other: git switch main
  - 1 files are not committed: commit or stash them (git status)
`,
    })
    rmSync(path.join(clone, 'left.txt'))
    git('switch', '--quiet', 'main')
    expect(await release()).toMatchObject({
      status: 2,
      said: expect.stringContaining('usage: npm run release -- 0.2.0'),
    })
  })

  test('is refused when a check fails, and shows what the check has printed', async () => {
    setCheck("echo 'src/main.ts has a fault' && exit 1")
    git('commit', '--quiet', '--all', '--message', 'Break the types')
    const { status, said } = await release('0.2.0')
    expect(said).toContain('src/main.ts has a fault')
    expect(said).toContain('not ok  types and lint: put right what it names (npm run check)')
    expect([status, git('status', '--porcelain'), git('tag', '--list')]).toEqual([1, '', ''])
    git('reset', '--quiet', '--hard', 'HEAD~1')
  })

  test('is shown by --dry-run, which changes nothing', { timeout: RELEASE_MS }, async () => {
    const { status, said } = await release('0.2.0', '--dry-run')
    expect(said).toContain('make "## Unreleased" of CHANGELOG.md "## 0.2.0 - <today>"')
    expect(status).toBe(0)
    expect([git('status', '--porcelain'), git('tag', '--list')]).toEqual(['', ''])
    expect(existsSync(artefacts)).toBe(false)
  })

  test('that fails midway leaves the clone as it was', { timeout: RELEASE_MS }, async () => {
    const head = git('rev-parse', 'HEAD')
    writeFileSync(path.join(clone, 'test/package/build.ts'), "throw new Error('no package today')\n")
    git('commit', '--quiet', '--all', '--message', 'Break the package')
    const broken = git('rev-parse', 'HEAD')
    const { status, said } = await release('0.2.0')
    expect(said).toContain('The files are as they were: npm run release -- 0.2.0 begins again.')
    expect(status).toBe(1)
    expect([git('status', '--porcelain'), git('tag', '--list'), git('rev-parse', 'HEAD')]).toEqual(['', '', broken])
    git('reset', '--quiet', '--hard', head)
  })

  test('that cannot be tagged leaves no commit', { timeout: RELEASE_MS }, async () => {
    const head = git('rev-parse', 'HEAD')
    git('config', 'tag.gpgSign', 'true')
    git('config', 'gpg.program', 'false')
    const { status, said } = await release('0.2.0')
    git('config', '--unset', 'tag.gpgSign')
    expect(said).toContain('there is no v0.2.0: ')
    expect(status).toBe(1)
    expect([git('status', '--porcelain'), git('tag', '--list'), git('rev-parse', 'HEAD')]).toEqual(['', '', head])
  })

  test('is one command: commit, tag and artefacts', { timeout: RELEASE_MS }, async () => {
    const before = migrations()
    expect(open(database)).toMatchObject({ status: 0, stderr: '' })
    const { status, said } = await release('0.2.0')
    expect(status, said).toBe(0)
    expect(said).toContain('git push --atomic origin main v0.2.0')
    expect(said).toContain('package.json has no "repository"')

    expect(git('status', '--porcelain')).toBe('')
    expect(git('cat-file', '-t', 'v0.2.0')).toBe('tag')
    expect(git('rev-parse', 'v0.2.0^{commit}')).toBe(git('rev-parse', 'main'))
    expect(git('log', '-1', '--format=%s')).toBe('Release 0.2.0')
    expect(git('log', '--format=%s', 'v0.2.0').split('\n')).toHaveLength(2)

    const [manifest, lock] = [JSON.parse(read('package.json')), JSON.parse(read('package-lock.json'))]
    expect([manifest.version, lock.version, lock.packages[''].version]).toEqual(['0.2.0', '0.2.0', '0.2.0'])
    expect(read('CHANGELOG.md')).toMatch(
      /^## Unreleased\n\n## 0\.2\.0 - \d{4}-\d\d-\d\d\n\n- Something that users notice\.$/m,
    )
    expect(before.length).toBeGreaterThan(1)
    expect(migrations()).toEqual(['0001-v0-2-0.sql'])
    const snapshot = JSON.parse(read('test/fixtures/earlier-version.json'))
    const [one] = snapshot.migrations
    expect([snapshot.version, snapshot.migrations.length, one.name]).toEqual(['0.2.0', 1, 'v0-2-0'])
    expect(one.digest).toBe(digest(read('src/storage/migrations/0001-v0-2-0.sql')))
  })

  test('opens a database that the clone made before it', () => {
    expect(open(database)).toMatchObject({ status: 0, stderr: '' })
    expect(open(path.join(folder, 'new.db'))).toMatchObject({ status: 0, stderr: '' })
  })

  test('has a package, the list of what is in it, the API, words for people and checksums', () => {
    expect(readdirSync(artefacts).sort()).toEqual([
      'SHA256SUMS',
      'notes.md',
      'openapi-0.2.0.json',
      'quayside-0.2.0.cdx.json',
      'quayside-0.2.0.tgz',
    ])
    const sums = readFileSync(path.join(artefacts, 'SHA256SUMS'), 'utf8').trim().split('\n')
    expect(sums.map((line) => line.split('  ')[1])).toEqual([
      'openapi-0.2.0.json',
      'quayside-0.2.0.cdx.json',
      'quayside-0.2.0.tgz',
    ])
    for (const line of sums) {
      const [sum, name = ''] = line.split('  ')
      expect(digest(readFileSync(path.join(artefacts, name)))).toBe(sum)
    }
    const packed = execFileSync('tar', ['-xzOf', path.join(artefacts, 'quayside-0.2.0.tgz'), 'package/package.json'])
    expect(JSON.parse(packed.toString()).version).toBe('0.2.0')
    expect(readFileSync(path.join(artefacts, 'notes.md'), 'utf8')).toBe('- Something that users notice.\n')
  })

  test('lists every package that users install, and no registry', () => {
    const text = readFileSync(path.join(artefacts, 'quayside-0.2.0.cdx.json'), 'utf8')
    const { metadata, components } = JSON.parse(text)
    const manifest = JSON.parse(read('package.json'))
    expect([metadata.component.name, metadata.component.version]).toEqual(['quayside', '0.2.0'])
    const lock = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { dev?: true; devOptional?: true; version: string }>
    }
    // It comes with `pg` alone, which few install. npm marks it as optional and not as a part of a development package.
    const ofPostgres = 'node_modules/pg-cloudflare'
    const needed = Object.entries(lock.packages).filter(
      ([at, { dev, devOptional }]) => at !== '' && at !== ofPostgres && !dev && !devOptional,
    )
    const inLock = needed.map(([at, { version }]) => `${at.split('node_modules/').at(-1)}@${version}`)
    const listed = (components as { 'bom-ref': string }[]).map((component) => component['bom-ref'])
    expect(listed).toEqual(
      expect.arrayContaining([`zod@${manifest.dependencies.zod}`, `pino@${manifest.dependencies.pino}`]),
    )
    expect([...new Set(listed)].sort()).toEqual([...new Set(inLock)].sort())
    expect(text).not.toContain('.tgz')
    expect(text).not.toContain('registry')
  })

  test('is the last one for the next', { timeout: RELEASE_MS }, async () => {
    expect((await release('0.2.0')).said).toContain(
      '0.2.0 is too low, as 0.2.0 is released already: choose a higher one',
    )
    expect((await release('0.3.0')).said).toContain('CHANGELOG.md has nothing below "## Unreleased"')
    const changelog = read('CHANGELOG.md').replace('## Unreleased\n', '## Unreleased\n\n- More.\n')
    writeFileSync(path.join(clone, 'CHANGELOG.md'), changelog)
    git('commit', '--quiet', '--all', '--message', 'Change something')
    const { status, said } = await release('0.3.0')
    expect(status, said).toBe(0)
    expect(migrations()).toEqual(['0001-v0-2-0.sql'])
    expect(partOf(read('CHANGELOG.md'), '## 0.3.0')).toBe('- More.')
    expect(partOf(read('CHANGELOG.md'), '## 0.2.0')).toBe('- Something that users notice.')
  })
})

const digest = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex')
