import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { controls } from '../../src/sandbox/control-table.ts'
import { faultOptions, faultTable, matchFields } from '../../src/sandbox/faults.ts'
import { widest } from '../support/cli-run.ts'
import { openSandbox } from '../support/sandbox-caller.ts'

let sandbox: Awaited<ReturnType<typeof openSandbox>>
beforeEach(async () => {
  sandbox = await openSandbox()
})
afterEach(() => sandbox.close())

const page = async (path: string, accept: string) => {
  const response = await fetch(new URL(path, sandbox.baseUrl), { headers: { accept } })
  return { status: response.status, type: response.headers.get('content-type'), text: await response.text() }
}

const names = [
  ...controls.map(({ call }) => call.replace(' /', ' /sandbox/')),
  ...Object.keys(faultTable),
  ...[...faultOptions, ...matchFields].map(({ name }) => name),
]

describe("the sandbox's own address", () => {
  it.each(['/', '/sandbox'])(
    'answers %s with every control, fault and option, for a terminal of 80 columns',
    async (path) => {
      const { status, type, text } = await page(path, '*/*')
      expect({ status, type }).toEqual({ status: 200, type: 'text/plain; charset=utf-8' })
      expect(names.filter((name) => !text.includes(name))).toEqual([])
      expect(widest(text)).toBeLessThanOrEqual(80)
      expect(text).toContain(`quayside sandbox fault set answer-lost --url ${new URL(sandbox.baseUrl).origin}\n`)
    },
  )

  it('answers a browser with a page of the same', async () => {
    const { type, text } = await page('/', 'text/html,application/xhtml+xml,*/*;q=0.8')
    expect(type).toBe('text/html; charset=utf-8')
    expect(names.filter((name) => !text.includes(name))).toEqual([])
  })
})

describe('the table of controls', () => {
  it.each(controls.map(({ call }) => call))('has %s, which is there and is no other address', async (call) => {
    const [method = '', path = ''] = call.split(' ')
    const { status, body } = await sandbox.control(
      method,
      path.replace('{id}', 'no-such-id'),
      method === 'POST' ? {} : undefined,
    )
    // An id that nothing has is refused as such, a body without its fields as wrong.
    expect([200, 201, 204, 400, 404]).toContain(status)
    expect((await sandbox.control(method, `${path}/x/y/z`)).status).toBe(404)
    if (!path.includes('{id}')) expect(status, JSON.stringify(body)).not.toBe(404)
  })
})

describe('a fault', () => {
  it.each([
    [{ fault: 'answer-lost', kind: 'internal' }, 'kind', 'answer-lost does not read it'],
    [{ fault: 'slow', delay: 5 }, 'delay', 'slow does not read it'],
    [{ fault: 'out-of-stock', match: { path: '/orders' } }, 'match.path', 'out-of-stock does not read it'],
    [{ fault: 'slow', delayMs: 'late' }, 'delayMs', 'expected number'],
  ])('with an option that it does not read was set, and did not do what was meant: %j', async (body, field, why) => {
    const answer = await sandbox.control('POST', '/faults', body)
    expect(answer.status).toBe(400)
    expect(answer.at('error')).toContain(field)
    expect(answer.at('error')).toContain(why)
    expect(sandbox.faults.list()).toEqual([])
  })
})
