/** The customers who wait for keys, in a terminal. */
import { counted } from '../domain/figures.ts'
import { plainName, waitLabels, wordOf } from '../domain/labels.ts'
import { plain, sentence } from '../domain/text-layout.ts'
import { waitCauses } from '../domain/waiting.ts'
import type { ItemOf } from '../http/api/table.ts'
import type { Answer } from './client.ts'
import type { Call, CommandRow } from './command.ts'
import { type Columns, right, tableOr } from './tables.ts'
import { ageOf, cell, commandLine, instant, money, quoted } from './words.ts'

type Waiting = Answer<'GET /waiting'>
type Line = ItemOf<'viewWaiting'>

export const waiting: CommandRow = {
  command: 'waiting',
  about: 'the customers who wait for keys: since when, why, what helps',
  options: {
    '--cause <cause>': `one of ${waitCauses.join(', ')}`,
    '--order <number>': 'of this order only',
    '--store <id>': 'of this store only',
  },
  help: `
A customer who has paid and has no key is here after a minute, or as soon as
something is out of the ordinary. Those who have waited longest come first.`,
  examples: ['waiting', 'waiting --cause balance', 'waiting --json | jq .customers'],
  call: 'GET /waiting',
  filters: ['cause', 'order', 'store'],
  text: (answer, call) => `${headline(answer, call)}${linesText(answer.items, call)}`,
}

export function waitingText(waiting: Answer<'GET /status'>['waiting'], now: number): string {
  const { customers, upTo, longestSince, forPerson } = waiting
  if (customers === 0) return 'no customer waits for a key'
  const whole = counted(customers, 'customer waits', 'customers wait', upTo)
  const longest = customers === 1 ? '' : 'the longest '
  return `${whole} for a key, ${longest}since ${instant(longestSince, now)}; ${forPerson} for a person`
}

function headline(answer: Waiting, { io, width }: Call): string {
  const sums = answer.money.map(
    ({ paid, charged, currency }) => `${money(paid, currency)} paid, ${money(charged, currency)} charged`,
  )
  const first = waitingText(answer, io.now()).replace(/^\w/, (letter) => letter.toUpperCase())
  return [first, ...sums].map((one) => sentence(`${one}.`, width)).join('')
}

const columns: Columns<Line> = {
  ORDER: { of: ({ number, reference }) => cell(number ?? reference), keep: true },
  PRODUCT: ({ name, sku }) => cell(name ?? sku),
  KEYS: right(({ missing, units }) => `${missing}/${units}`),
  PAID: { of: ({ paid, currency }) => money(paid, currency), right: true, keep: true },
  WAITS: right(({ since }, now) => ageOf(since, now)),
  CAUSE: { of: ({ cause }) => waitLabels[cause]?.short ?? plainName(cause), keep: true },
}

function linesText(items: Line[], call: Call): string {
  if (items.length === 0) return call.option('cause') === undefined ? '' : 'No line waits for this cause.\n'
  const helps = items.flatMap((item) => {
    const { number, reference, cause, detail } = item
    const command = commandOf(item)
    const about = sentence(
      `${cell(number ?? reference)}: ${plain([wordOf(waitLabels, cause), detail].filter(Boolean).join('; '))}`,
      call.width,
      { lead: '  ', hang: 4 },
    )
    return command === undefined ? [] : [`${about}    ${commandLine(command)}\n`]
  })
  return `\n${tableOr('', items, columns, call)}${helps.length === 0 ? '' : `\nWhat helps:\n${helps.join('')}`}`
}

/** Returns the command that helps; undefined where nothing needs to be done. */
function commandOf({ help, cause, purchaseId, updateId, reference, store, line }: Line): string | undefined {
  const order = `${quoted(cell(reference))} --store ${quoted(cell(store))}`
  const commands: Record<Line['help'], string | undefined> = {
    decide: `reviews show ${cell(purchaseId)}`,
    retry: `purchases retry ${cell(purchaseId)}`,
    send_again: `outbox redeliver ${cell(updateId)}`,
    unfreeze: 'unfreeze',
    release: `purchases release ${cell(purchaseId)} ${cause === 'ceiling' ? '--ceiling <amount>' : '--override-spend-cap'}`,
    top_up: 'balance',
    proceed: `orders release ${order}`,
    take: `orders take ${order} --line ${quoted(cell(line))}`,
    try_now: `purchases check ${cell(purchaseId)}`,
    look_now: `purchases check ${cell(purchaseId)}`,
    look: undefined,
  }
  return commands[help]
}
