import { plain } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import type { Answer } from './client.ts'
import { type Call, type CommandRow, neededReason, REASON, type RecordView, recordText, whole } from './command.ts'
import { maybe, when } from './facts.ts'
import { readInput } from './listings.ts'
import { ago } from './tables.ts'
import { ageOf, cell, commandLine, joined } from './words.ts'

type Claim = Answer<'GET /claims/:number'>
type Entry = Pick<Claim, 'state' | 'deadlineAt'>

/** Writes the number of a claim as the commands take it, without a comma. */
export const numberOf = ({ number }: Pick<Claim, 'number'>): string => String(number)

/** Returns the state of a claim; an open claim says how long it may still be open. */
export const claimState = ({ state, deadlineAt }: Entry, now: number): string =>
  joined(
    state,
    state === 'open' &&
      (Date.parse(deadlineAt) > now ? `until ${deadlineAt.slice(0, 10)}` : `${ageOf(deadlineAt, now)} late`),
  )

const claimView: RecordView<Claim> = {
  facts: {
    Claim: numberOf,
    State: claimState,
    Order: ({ order }) => `${cell(order.reference)} of ${cell(order.store)}, line ${cell(order.line)}`,
    Product: ({ sku, name }) => joined(cell(sku), name && cell(name)),
    Key: ({ purchaseId, ordinal }) => `key ${cell(ordinal)} of purchase ${cell(purchaseId)}`,
    Raised: ({ raisedBy, ...claim }, now) => `${when('raisedAt')(claim, now)} by ${cell(raisedBy)}`,
    Ended: when('endedAt'),
    Reason: maybe('reason'),
    'Replaced by': maybe('replacedBy'),
  },
  parts: ({ message, number, state }) => [
    `For the supplier:\n${message
      .split('\n')
      .map((line) => `  ${plain(line)}`.trimEnd())
      .join('\n')}\n`,
    state === 'open' ? `Decide: ${commandLine(`claims buy-again ${number}`)}, or adopt, or refuse\n` : '',
  ],
}

const NUMBER = 'its number'
const now = (done: string) => (claim: Claim, call: Call) => `${done}\n\n${recordText(claim, claimView, call)}`

export const claims: CommandRow[] = [
  { command: 'claims', about: 'keys that do not work: list, show, raise, buy again, adopt, refuse' },
  {
    command: 'claims list',
    about: 'claims, the newest first',
    options: { '--state <state>': 'open or ended' },
    call: 'GET /claims',
    filters: ['state'],
    empty: 'No claim.',
    columns: {
      CLAIM: numberOf,
      STATE: claimState,
      ORDER: ({ order }) => cell(order.reference),
      SKU: 'sku',
      AGE: ago('raisedAt'),
      NOTE: 'note',
    },
  },
  {
    command: 'claims show <number>',
    about: 'one claim, with all that the supplier needs in one text',
    args: [NUMBER],
    call: 'GET /claims/:number',
    ...claimView,
  },
  {
    command: 'claims raise <purchase>',
    about: 'say that a key that the customer has does not work',
    args: ['the purchase of the key, as `orders show` lists it'],
    options: {
      '--ordinal <number>': { about: 'which of its keys, from 1; needed where it has several', parse: whole(10_000) },
      '--note <text>': { about: 'what is wrong with it, for the supplier', required: true },
    },
    examples: ["claims raise 01jtq3k5ze0000qsv1a2b3c4d5 --note 'redeemed before'"],
    call: 'POST /purchases/:id/claims',
    body: ['ordinal', 'note'],
    text: now('Raised.'),
  },
  {
    command: 'claims buy-again <number>',
    about: 'buy one unit again in place of the key',
    args: [NUMBER],
    options: REASON,
    call: 'POST /claims/:number/buy-again',
    body: ['reason'],
    text: now('One unit is bought again, and its key takes the place of the other.'),
  },
  {
    command: 'claims adopt <number>',
    about: "give the customer the supplier's new key",
    args: [NUMBER],
    options: { '--key-file <file>': 'a file with the key alone (default: standard input)', ...REASON },
    help: '\nThe key is never an argument, because a shell keeps those.',
    examples: ['claims adopt 7 --key-file key.txt'],
    call: 'POST /claims/:number/adopt',
    body: async (call) => ({ key: await keyOf(call), ...call.values('reason') }),
    text: now('The new key is on its way to the customer.'),
  },
  {
    command: 'claims refuse <number>',
    about: 'end a claim without another key',
    args: [NUMBER],
    options: REASON,
    call: 'POST /claims/:number/refuse',
    body: (call) => ({ reason: neededReason(call) }),
    text: now('Refused.'),
  },
]

/** Reads the new key. @throws Failure `invalid` where there is none */
async function keyOf({ io, asks, option }: Call): Promise<string> {
  const file = option('keyFile')
  if (file === undefined && asks) throw new Failure('invalid', 'name the file with the key: --key-file <file>')
  const text = Buffer.from(await readInput(file ?? '-', io))
    .toString('utf8')
    .trim()
  if (text === '') throw new Failure('invalid', `${file ?? 'standard input'} is empty: it must have the key`)
  return text
}
