import { describe, expect, test } from 'vitest'
import { writeDemoConfig } from '../src/demo/files.ts'
import { openSetUp } from '../src/installation.ts'
import { createLog, type Log, terminalLine } from '../src/log.ts'
import { run, temporaryFolder } from './support/cli-run.ts'

/** What a log writes. */
function linesOf(work: (log: Log) => void, options: Partial<Parameters<typeof createLog>[0]> = {}): string[] {
  const lines: string[] = []
  work(createLog({ level: 'info', write: (line) => void lines.push(line), ...options }))
  return lines
}

/** The log of a service that starts and stops again. */
async function served(options: Parameters<typeof run>[1]): Promise<string[]> {
  const folder = temporaryFolder()
  const place = { folder, baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'k'.repeat(20), dialect: 'reseller-v1.1' }
  const config = writeDemoConfig({ ...place, port: 0, storePort: 1, more: { publicUrl: null } })
  await (await openSetUp(config, {})).close()
  const { exitCode, stdout } = await run(['serve', '--config', config], options)
  expect(exitCode).toBe(0)
  return stdout.trimEnd().split('\n')
}

describe('a log record', () => {
  test('began with its level as a number, and had the event behind every field', () => {
    const [line = ''] = linesOf((log) => log.warn('sync.failed', { pages: 3, error: 'no answer', runId: undefined }))
    expect(line).toMatch(/^\{"time":"\d{4}-\d\d-\d\dT[\d:.]+Z","event":"sync\.failed","level":"warn","pages":3,/)
    expect(JSON.parse(line)).toMatchObject({ pages: 3, error: 'no answer' })
  })

  test('is written from the set level on', () => {
    const all = (log: Log) => [log.info('one'), log.warn('two'), log.error('three')]
    const events = (level: 'debug' | 'warn' | 'error') =>
      linesOf(all, { level }).map((line) => (JSON.parse(line) as { event: string }).event)
    expect(events('debug')).toEqual(['one', 'two', 'three'])
    expect(events('warn')).toEqual(['two', 'three'])
    expect(events('error')).toEqual(['three'])
  })

  test('carries only fields that are listed, and a failing writer fails nothing', () => {
    const [line = ''] = linesOf((log) => log.info('one', { ...{ licenceKey: 'AAAAA' }, count: 1 }))
    expect(line).not.toContain('AAAAA')
    const broken = createLog({
      level: 'info',
      write: () => {
        throw new Error('the pipe is closed')
      },
    })
    expect(() => broken.info('one')).not.toThrow()
  })
})

describe('on a terminal', () => {
  const shown = (fields: Parameters<Log['info']>[1], colours = false) =>
    linesOf((log) => log.error('service.started', fields), { lineOf: terminalLine({ colours }) })

  test('a record is one line with time, level, event and fields', () => {
    const fields = { address: 'http://127.0.0.1:8080', count: 2, error: 'it says "no"', cause: null }
    expect(shown(fields)).toEqual([
      expect.stringMatching(
        /^[\d-]{10} [\d:]{8}Z error service\.started address=http:\/\/127\.0\.0\.1:8080 count=2 error="it says \\"no\\""\n$/,
      ),
    ])
  })

  test('a path from outside neither breaks the line nor moves the cursor', () => {
    const [line = ''] = shown({ path: '/a\r\u001b[2K\u009b1A level=info\nforged' })
    expect(line).toContain('path="/a [2K 1A level=info forged"')
  })

  test('colours mark time, level and names', () => {
    const [line = ''] = shown({ count: 2 }, true)
    expect(line).toContain('Z\u001b[0m \u001b[31merror\u001b[0m service.started \u001b[2mcount=\u001b[0m2\n')
  })

  test('serve prints lines for people, and JSON into a pipe', async () => {
    const plain = await served({ terminal: true, env: { NO_COLOR: '1' } })
    expect(plain[0]).toMatch(/^[\d-]{10} [\d:]{8}Z info {2}database\.opened file=/)
    expect(plain.join('\n')).not.toContain('\u001b')
    expect((await served({ terminal: true })).join('\n')).toContain('\u001b[')
    for (const line of await served({})) expect(Object.keys(JSON.parse(line)).slice(0, 2)).toEqual(['time', 'event'])
  })
})
