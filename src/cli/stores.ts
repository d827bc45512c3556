import { listingLabels } from '../domain/labels.ts'
import { either, sentence, wrap } from '../domain/text-layout.ts'
import { backend } from '../stores/backend/kind.ts'
import { shopKinds, storeKinds } from '../stores/kinds.ts'
import type { StoreFinding } from '../stores/store.ts'
import type { Item } from './client.ts'
import {
  type CommandRow,
  fileOptions,
  type Given,
  neededReason,
  oneOf,
  proseWidth,
  REASON,
  wholeOf,
} from './command.ts'
import { findingText } from './facts.ts'
import type { AddOptions } from './stores-add.ts'
import { key } from './tables.ts'
import { ageOf, cell, commandLine, countsText, instant } from './words.ts'

export const creations = ['nothing', 'draft', 'publish'] as const

/** The options that say how a newly added shop sells at first. */
const sellingOptions = {
  '--name <name>': 'what the store is called',
  '--create <how>': {
    about: 'what becomes of an offer that the shop lacks: nothing, draft or publish (default: nothing)',
    parse: oneOf(creations),
  },
  '--markup <percent>': 'price = cost plus this (default: 20)',
}
export type SellingFlags = Given<typeof sellingOptions>

const TRIED_FIRST =
  'What no option says is asked on a terminal. Nothing in the shop changes, and nothing is written before the shop was tried.'

/** The time for a test: it sends a handful of requests, and a shop may be slow. */
export const TEST_DEADLINE_MS = 180_000

export const stores: CommandRow[] = [
  {
    command: 'stores',
    about: 'where you sell: add, pause, remove, list, test, confirm; change the secret of callbacks',
  },
  { command: 'stores add', about: `add a store to the settings: ${either(storeKinds.map(({ kind }) => kind))}` },
  ...shopKinds.map((kind): CommandRow => {
    const { help } = kind.shop
    return {
      command: `stores add ${kind.kind}`,
      about: help.about,
      options: {
        '--url <address>': help.url,
        '--key-file <file>': `${help.keyFile}; else QUAYSIDE_SHOP_KEY`,
        ...Object.fromEntries(Object.values(help.options)),
        ...sellingOptions,
        ...fileOptions,
      },
      help: `\n${wrap(`${help.credentialsFrom} ${TRIED_FIRST}`, 80).join('\n')}`,
      examples: [
        `stores add ${kind.kind}`,
        `stores add ${kind.kind} --url ${help.exampleUrl} \\
    --key-file ./key.txt --name 'My shop' --create draft`,
      ],
      run: async (io, options: AddOptions) => (await import('./stores-add.ts')).runAddStore(io, kind, options),
    }
  }),
  {
    command: `stores add ${backend.kind}`,
    about: 'add a server of your own, which posts its orders and is called back',
    options: {
      '--callback-url <address>': 'where your backend gets keys and failures',
      '--name <name>': sellingOptions['--name <name>'],
      '--markup <percent>': sellingOptions['--markup <percent>'],
      ...fileOptions,
    },
    help: `
What no option says is asked on a terminal. The token of its orders and the
secret of its callbacks are shown once. Where the settings are lines of the
configuration, stop the service first.`,
    examples: [`stores add ${backend.kind} --callback-url https://shop.example/quayside`],
    run: async (io, options: AddOptions) => (await import('./stores-add.ts')).runAddStore(io, backend, options),
  },
  {
    command: 'stores remove <store>',
    about: 'remove a store of which nothing is under way; its orders and keys stay',
    args: ['its id, or the name before the dash'],
    options: REASON,
    help: `
Where the settings are lines of the configuration, stop the service first: the
store is taken out of the file. Its id stays there, so that a lost database is
recognised by it.`,
    examples: ["stores remove my-shop --reason 'closed'"],
    act: async (call) => (await import('./stores-remove.ts')).runRemoveStore(call),
  },
  {
    command: 'stores pause <store>',
    about: 'sell nothing in a store: it shows no stock; orders are bought as before',
    args: ['its id, or the name before the dash'],
    options: { ...REASON, '--resume': 'let it sell again' },
    examples: ["stores pause my-shop --reason 'prices are checked'", "stores pause my-shop --resume --reason 'done'"],
    call: 'POST /stores/:store/selling',
    body: (call) => ({ selling: call.flag('resume') ? 'on' : 'paused', reason: neededReason(call) }),
    text: ({ revision }, { width }) => sentence(`In force: revision ${revision} of the settings.`, width),
  },
  {
    command: 'stores list',
    about: 'the configured stores',
    call: 'GET /stores',
    page: null,
    empty: `No store is configured. \`${commandLine('stores add')}\` adds one.`,
    columns: {
      ID: key('id'),
      NAME: 'name',
      KIND: 'kind',
      ADDRESS: 'address',
      SECRET: ({ callbackSecret }, now) => (callbackSecret === null ? '' : secretAge(callbackSecret, now)),
      LISTINGS: ({ listings }) => countsText(listings, listingLabels),
    },
    below: (rows, { io, width }) =>
      rows
        .flatMap((row) => notesOf(row, io.now()).map((note) => `${cell(row.id)}: ${note}`))
        .map((note) => sentence(note, width, { lead: '  ', hang: 4 }))
        .join(''),
  },
  {
    command: 'stores test [store]',
    about: 'try a store: whether it lets us in, its webhook, its orders, its listings',
    args: ['its id, or the name before the dash; the only one, if it is left out'],
    options: { '--order <reference>': 'its number of an order of yours: walk along it, up to its mail' },
    help: `
Each finding has its cause and what to do. The exit code is 1 where one failed.
A shop is proven once a key was opened on the page of one of its orders, or once
you confirm the mail of one by \`quayside stores confirm\`.`,
    examples: ['stores test my-shop', 'stores test my-shop --order 1001'],
    call: 'POST /stores/:store/test',
    body: ['order'],
    deadlineMs: TEST_DEADLINE_MS,
    fails: ({ healthy }) => !healthy,
    text: ({ findings }, { io }) => findingsText(findings, proseWidth(io)),
  },
  {
    command: 'stores confirm <store>',
    about: 'confirm that the mail of an order brought the keys, or their link',
    args: ['its id, or the name before the dash'],
    options: { '--order <reference>': { about: 'its number of the order whose mail you saw', required: true } },
    examples: ['stores confirm my-shop --order 1001'],
    call: 'POST /stores/:store/confirm-mail',
    body: ['order'],
    text: ({ store, proven }, { io, width }) =>
      sentence(
        `${cell(store)} is proven by the ${cell(proven?.by)} of an order, ${instant(proven?.at, io.now())}.`,
        width,
      ),
  },
  {
    command: 'stores rotate-secret <store>',
    about: 'sign callbacks with a new secret; the old one stays valid',
    args: ['its id, or the name before the dash'],
    options: {
      '--overlap-hours <hours>': {
        about: 'how long the old one stays valid, 0 to 720 (default: 168)',
        parse: wholeOf('hours'),
      },
    },
    help: `
Until the old secret ends, every callback carries both signatures, so that the
store accepts it with either. Install the new one in the store in this time.
Was the old one seen by others? --overlap-hours 0 ends it at once: callbacks
are refused and repeated until the store has the new one.`,
    call: 'POST /stores/:store/rotate-secret',
    body: ['overlapHours'],
    text: (rotated, { io, width }) => {
      const until = oldUntil(rotated, io.now())
      return [
        `${cell(rotated.secret)}\n`,
        sentence(`Install it in ${cell(rotated.store)} now: it is not shown again.`, width),
        sentence(until ? `The old secret is valid until ${until}.` : 'The old secret is out of use.', width),
      ].join('')
    },
  },
]

export const trigger: CommandRow = {
  command: 'trigger <type>',
  about: 'send your store an example of a callback, marked as a test',
  args: ['line.fulfilled, line.failed, line.held, line.resumed or order.closed'],
  options: { '--store <id>': 'which store, when there are several' },
  help: `
The callback is signed as all others are, its body has "test": true, and its
order is one that no shop has. It is sent once and stored nowhere.`,
  examples: ['trigger line.fulfilled'],
  call: 'POST /stores/:store/trigger',
  body: ({ args }) => ({ type: args[0] }),
  fails: ({ outcome }) => outcome !== 'confirmed',
  text: ({ outcome, type, id, ms, detail }, { width }) => {
    const as = `${cell(type)}, sent as ${cell(id)}`
    const text =
      outcome === 'confirmed'
        ? `The store confirmed ${as}, in ${cell(ms)} ms.`
        : `The store did not confirm ${as}: ${cell(detail)}.`
    return sentence(text, width)
  },
}

type Store = Item<'GET /stores'>
type CallbackSecret = Pick<NonNullable<Store['callbackSecret']>, 'previousUntil'>

/** Returns the age of a secret. The first secret has no age, because it is derived from the data key. */
const secretAge = ({ changedAt }: NonNullable<Store['callbackSecret']>, now: number): string =>
  changedAt === null ? 'first' : `${ageOf(changedAt, now)} old`

function notesOf({ callbackSecret, pausedUntil, error, needsProof, proven }: Store, now: number): string[] {
  const until = oldUntil(callbackSecret, now)
  const generation = cell(callbackSecret?.generation)
  return [
    until && `callbacks are signed with secret ${generation}, and with the old one until ${until}`,
    pausedUntil && pausedText({ store: 'it', until: pausedUntil, error }, now),
    needsProof && proven === null && `not proven: see \`${commandLine('stores test --help')}\``,
  ].flatMap((note) => note || [])
}

/** Says that a store takes no prices and stock now, when the next try is, and why. */
export const pausedText = (
  { store, until, error }: { store: string; until: string; error: string | null },
  now: number,
): string =>
  `${cell(store)} takes no listings, next try ${Date.parse(until) > now ? instant(until, now) : 'at once'}: ${cell(error)}`

/** Returns until when the previous secret is valid; undefined when that secret is not valid any more. */
export function oldUntil(secret: CallbackSecret | null, now: number): string | undefined {
  const until = secret?.previousUntil
  return until && Date.parse(until) > now ? instant(until, now) : undefined
}

export const findingsText = (findings: readonly StoreFinding[], width: number): string =>
  findings.map(({ check, state, detail, fix }) => findingText(state, check, detail, fix, width)).join('')
