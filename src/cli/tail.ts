import { sentence } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { type LogRecord, terminalLine } from '../log.ts'
import type { Call, CommandRow } from './command.ts'
import { NOT_RUNNING } from './exit-codes.ts'

/** The events that most people want to see: what the supplier sends, what is bought, what the stores get, and alerts. */
const SHOWN = /^(delivery|purchase|order|callback|alert|frozen|unfrozen|tail)\b/

const PARTIAL = 'Of several processes this shows one alone: purchases and callbacks are in the log of the worker.'

export const tail: CommandRow = {
  command: 'tail',
  about: 'watch deliveries, purchases and hand-overs as they happen',
  options: { '--all': 'every record of the log', '--json': 'print one JSON object a line, one for each record' },
  help: `
It shows what happens from now on, until Ctrl-C.`,
  examples: ['tail', `tail --all --json | jq 'select(.level != "info")'`],
  act: async (call) => {
    const events = await call.client.events('GET /events')
    if (!call.json) call.io.stderr.write(`Watching ${call.client.origin}; Ctrl-C ends it.\n`)
    await Promise.race([show(call, events), call.io.stopSignal()])
    return undefined
  },
}

/** Prints the events as they come. @throws Failure `unavailable` once the service has ended */
async function show({ io, json, flag, client, width }: Call, events: AsyncIterable<object>): Promise<void> {
  const lineOf = terminalLine({ colours: io.isTerminal && !io.env.NO_COLOR })
  for await (const record of events as AsyncIterable<LogRecord>) {
    if (!io.stdout.writable) return
    if (record.event === 'tail.partial' && !json) {
      io.stderr.write(sentence(PARTIAL, width))
      continue
    }
    if (record.event === 'tail.idle' || (!flag('all') && !SHOWN.test(record.event))) continue
    io.stdout.write(`${json ? JSON.stringify(record) : lineOf(record)}\n`)
  }
  throw new Failure('unavailable', `Quayside at ${client.origin} has ended.`, { reason: NOT_RUNNING })
}
