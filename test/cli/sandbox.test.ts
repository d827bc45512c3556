import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freePort } from '../../src/demo/files.ts'
import { controls } from '../../src/sandbox/control-table.ts'
import { faultTable } from '../../src/sandbox/faults.ts'
import { run, temporaryFolder, widest } from '../support/cli-run.ts'
import { openSandbox } from '../support/sandbox-caller.ts'

async function started() {
  const sandbox = await openSandbox()
  onTestFinished(() => sandbox.close())
  const { origin } = new URL(sandbox.baseUrl)
  const fault = (...argv: string[]) => run(['sandbox', 'fault', ...argv, '--url', origin], { terminal: true })
  return { sandbox, origin, fault }
}

/** Another program, perhaps a sandbox, has the default port of this machine. */
const isTaken = (await freePort(8090)) !== 8090

describe('quayside sandbox --help', () => {
  it('lists every control and fault within 80 columns', async () => {
    const { stdout } = await run(['sandbox', '--help'])
    const names = [...controls.map(({ call }) => call.replace(' /', ' /sandbox/')), ...Object.keys(faultTable)]
    expect(names.filter((name) => !stdout.includes(name))).toEqual([])
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    expect(widest((await run(['sandbox', 'fault', 'set', '--help'])).stdout)).toBeLessThanOrEqual(80)
  })
})

describe('quayside sandbox fault', () => {
  it('sets a fault with its options, lists it with what it does, and clears it', async () => {
    const { sandbox, origin, fault } = await started()
    const set = await fault('set', 'slow', '--delay-ms', '5000', '--times', '3', '--path', '/orders')
    expect(set).toMatchObject({ exitCode: 0, stderr: '' })
    expect(set.stdout).toBe(`slow is set at ${origin}, for 3 times: it answers late.\n`)
    expect(sandbox.faults.list()).toMatchObject([
      { fault: 'slow', delayMs: 5_000, times: 3, match: { path: '/orders' } },
    ])
    expect((await fault('list')).stdout).toBe(
      'FAULT  LEFT  FIRED  OPTIONS\nslow      3      0  delayMs=5000 stage=after path=/orders\n',
    )
    expect((await fault('clear')).stdout).toBe(`1 fault cleared at ${origin}.\n`)
    expect(sandbox.faults.list()).toEqual([])
    expect((await fault('list')).stdout).toContain(`No fault is set at ${origin}.`)
  })

  it.each(Object.keys(faultTable))('sets %s', async (name) => {
    const { sandbox, fault } = await started()
    const { exitCode, stdout } = await fault('set', name)
    expect(exitCode).toBe(0)
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    expect(sandbox.faults.list()).toMatchObject([{ fault: name, left: 1 }])
  })

  it('sends a Retry-After as a number, as a text, or none', async () => {
    const { sandbox, fault } = await started()
    for (const value of ['30', 'soon', 'none']) await fault('set', 'rate-limit', '--retry-after', value)
    expect(sandbox.faults.list().map(({ retryAfter }) => retryAfter)).toEqual([30, 'soon', null])
  })

  it('prints one JSON document', async () => {
    const { origin, fault } = await started()
    expect(JSON.parse((await fault('set', 'hold-open', '--json')).stdout)).toMatchObject({
      fault: 'hold-open',
      left: 1,
    })
    expect(JSON.parse((await fault('list', '--json')).stdout)).toMatchObject({
      sandbox: origin,
      faults: [{ fault: 'hold-open' }],
    })
    expect(JSON.parse((await fault('clear', '--json')).stdout)).toEqual({ sandbox: origin, cleared: 1 })
  })

  it.each([
    [['earthquake'], "there is no fault 'earthquake': name one of answer-lost,"],
    [['slow', '--kind', 'internal'], '--kind: slow does not read it'],
    [['slow', '--delay-ms', 'late', '--stage', 'never'], '--delay-ms: must be a number'],
    [['slow', '--stage', 'never'], '--stage: Invalid option: expected one of "before"|"after"'],
    [['hold-open', '--times', '0'], '--times: '],
  ])('names what is wrong with %j', async (argv, said) => {
    const { sandbox, fault } = await started()
    const { exitCode, stderr } = await fault('set', ...argv)
    expect(exitCode).toBe(2)
    expect(stderr.replaceAll(/\s+/g, ' ')).toContain(said)
    expect(sandbox.faults.list()).toEqual([])
  })

  it.skipIf(isTaken)(
    "finds the demo's sandbox where none is at the default address, and says where it looked",
    async () => {
      const { sandbox, origin } = await started()
      const folder = temporaryFolder()
      const env = { QUAYSIDE_DATA_DIR: folder }
      const at = (baseUrl: string) =>
        writeFileSync(path.join(folder, 'demo.json'), JSON.stringify({ supplier: { baseUrl } }))
      at(sandbox.baseUrl)
      expect((await run(['sandbox', 'fault', 'list'], { env })).stdout).toContain(`No fault is set at ${origin}`)
      const nowhere = `http://127.0.0.1:${await freePort()}`
      at(`${nowhere}/v1`)
      const { exitCode, stderr } = await run(['sandbox', 'fault', 'list'], { env })
      expect(exitCode).toBe(3)
      expect(stderr).toContain(`no sandbox answers at http://127.0.0.1:8090 or ${nowhere}.`)
      expect(stderr).toContain('Start one by `npx quayside sandbox`')
    },
  )
})
