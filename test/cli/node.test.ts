import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'

const entry = fileURLToPath(new URL('../../src/quayside.js', import.meta.url))

/** Starts the entry as a process, on a Node that says it is this version. */
function startOn(version: string, ...argv: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const versions = `{ value: { ...process.versions, node: '${version}' } }`
  const pretend = `data:text/javascript,${encodeURIComponent(`Object.defineProperty(process, 'versions', ${versions})`)}`
  return new Promise((resolve) => {
    execFile(process.execPath, ['--import', pretend, entry, ...argv], (error, stdout, stderr) => {
      resolve({ code: error?.code ?? 0, stdout, stderr })
    })
  })
}

describe('the entry', () => {
  it.each(['12.22.12', '18.20.8', '20.20.2', '22.18.0', '23.5.0'])(
    'on Node %s says in one line what is needed',
    async (version) => {
      const { code, stdout, stderr } = await startOn(version, '--version')
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr.split('\n')).toHaveLength(2)
      expect(stderr).toContain(`needs Node 22.19 or newer, and this is ${version}`)
      expect(stderr).toContain('npm ci')
    },
  )

  it.each(['22.19.0', '24.21.0', '26.0.0'])('on Node %s runs the command line', async (version) => {
    const { code, stdout } = await startOn(version, '--help')
    expect(code).toBe(0)
    expect(stdout).toContain('Usage: quayside')
  })

  it.each(['--version', '-V', 'version'])('loaded the whole program for %s', (word) => {
    const folder = mkdtempSync(join(tmpdir(), 'quayside-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    mkdirSync(join(folder, 'src'))
    // There is no more of the program than this.
    for (const name of ['package.json', 'src/quayside.js', 'src/quick-imports.js']) {
      cpSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)), join(folder, name))
    }
    const stdout = execFileSync(process.execPath, [join(folder, 'src/quayside.js'), word], { encoding: 'utf8' })
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  it('gives the exit code of the command', async () => {
    const { code, stderr } = await startOn('24.21.0', 'frob')
    expect(code).toBe(2)
    expect(stderr).toContain("unknown command 'frob'")
  })

  it('ends quietly when the reader of its output has seen enough', async () => {
    const child = spawn(process.execPath, [entry, '--help'], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.destroy()
    let stderr = ''
    child.stderr.on('data', (chunk) => {
      stderr += String(chunk)
    })
    await once(child, 'close')
    expect(stderr).toBe('')
  })

  describe('keeps compiled code', () => {
    /** Starts the entry with a cache folder of its own. @returns the folder that it may use in there */
    function startIn(prepare: (folder: string) => void = () => {}): string {
      const cache = mkdtempSync(join(tmpdir(), 'quayside-'))
      onTestFinished(() => rmSync(cache, { recursive: true, force: true }))
      const folder = join(cache, 'quayside')
      prepare(folder)
      const { NODE_COMPILE_CACHE: _, ...env } = process.env
      execFileSync(process.execPath, [entry, '--help'], { env: { ...env, XDG_CACHE_HOME: cache } })
      return folder
    }

    it('in a folder that its owner alone can read', () => {
      const folder = startIn()
      expect(statSync(folder).mode & 0o777).toBe(0o700)
      expect(readdirSync(folder)).not.toEqual([])
    })

    it.each([0o777, 0o755])('in no folder of mode %o, which others can read or write', (mode) => {
      const folder = startIn((path) => {
        mkdirSync(path)
        chmodSync(path, mode)
      })
      expect(readdirSync(folder)).toEqual([])
    })

    it('behind no symbolic link', () => {
      const folder = startIn((link) => {
        mkdirSync(`${link}-target`, { mode: 0o700 })
        symlinkSync(`${link}-target`, link)
      })
      expect(readdirSync(`${folder}-target`)).toEqual([])
    })

    it('nowhere when its folder cannot be made', () => {
      const folder = startIn((path) => void symlinkSync('/proc/none', path))
      expect(existsSync(folder)).toBe(false)
    })
  })
})
