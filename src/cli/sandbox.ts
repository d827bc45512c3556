/** The commands for the sandbox: run a sandbox, and set the faults of a running one. */
import { existsSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { configShape, readJson } from '../config/config.ts'
import { counted } from '../domain/figures.ts'
import { sentence } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { factsOf, faultOptions, faultTable, matchFields, readFault, type SandboxFault } from '../sandbox/faults.ts'
import { faultSections, sectionsOfPage, sectionsText } from '../sandbox/front-page.ts'
import { demoFolder } from './client.ts'
import { type CommandRow, fileOptions, type Given, type Io, print, proseWidth, whole, widthOf } from './command.ts'
import { NOT_RUNNING } from './exit-codes.ts'
import { number, table } from './tables.ts'
import { cell, commandLine } from './words.ts'

const PORT = 8090
const DEFAULT_ORIGIN = `http://127.0.0.1:${PORT}`

const shared = {
  '--url <address>': `address of the sandbox, else ${DEFAULT_ORIGIN}, else the demo's`,
  '--json': fileOptions['--json'],
}

/** The options of a command on faults; the options of the fault itself are among them. */
type FaultFlags = Given<typeof shared> & Record<string, unknown>

const sandboxOptions = {
  '--port <number>': { about: 'where it listens; 0 takes a free one', parse: whole(65_535), fallback: PORT },
  '--offers <count>': { about: 'sell a generated catalogue of this size', parse: whole(10_000_000) },
  '--seed <number>': { about: 'of the generated catalogue', parse: whole(2 ** 31) },
  '--dialect <name|file>': { about: 'the dialect that it speaks', fallback: 'reseller-v1.1' },
  '--file <file>': "store the sandbox's data in this SQLite file (default: it ends with the process)",
  '--api-key <key>': { about: 'the key that it lets in', fallback: 'sandbox-key' },
}
export type SandboxSettings = Given<typeof sandboxOptions>

export const sandbox: CommandRow[] = [
  {
    command: 'sandbox',
    about: 'run a supplier to try things on: the whole Reseller API v1.1',
    options: sandboxOptions,
    help: `
${sectionsText(sectionsOfPage()).trimEnd()}`,
    examples: ['sandbox --offers 50000 --seed 7 --file data/sandbox.db', 'sandbox fault set answer-lost'],
    run: async (io, options: SandboxSettings) => (await import('./serve.ts')).runSandbox(io, options),
  },
  { command: 'sandbox fault', about: 'faults of a running sandbox: list, set, clear' },
  {
    command: 'sandbox fault list',
    about: 'the faults that are set, and how often each fired',
    options: shared,
    run: listFaults,
  },
  {
    command: 'sandbox fault set <fault>',
    about: 'set a fault; the next requests, orders or deliveries meet it',
    args: [`its name, as \`${commandLine('sandbox --help')}\` lists it`],
    options: {
      ...Object.fromEntries(
        [...faultOptions, ...matchFields].map(({ name, does }) => [`${flagOf(name)} <value>`, does]),
      ),
      ...shared,
    },
    help: `
${sectionsText(faultSections()).trimEnd()}`,
    examples: [
      'sandbox fault set answer-lost',
      'sandbox fault set slow --delay-ms 5000 --times 3',
      'sandbox fault set rate-limit --path /products --retry-after 30',
    ],
    run: setFault,
  },
  { command: 'sandbox fault clear', about: 'clear all faults', options: shared, run: clearFaults },
]

/** Returns the flag of an option: `delayMs` becomes `--delay-ms`. */
function flagOf(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

async function listFaults(io: Io, { url, json }: FaultFlags): Promise<undefined> {
  const { origin, faults } = await findSandbox(url, io.env)
  print(io, json, { sandbox: origin, faults }, () => {
    const none = `No fault is set at ${origin}. \`${commandLine('sandbox fault set <fault>')}\` sets one; \`${commandLine('sandbox --help')}\` lists them.`
    if (faults.length === 0) return sentence(none, proseWidth(io))
    const columns = { FAULT: 'fault', LEFT: number('left'), FIRED: number('fired'), OPTIONS: optionsText } as const
    return table(faults, columns, widthOf(io))
  })
}

async function setFault(io: Io, { url, json, ...given }: FaultFlags, name = ''): Promise<undefined> {
  const input = {
    fault: name,
    ...valuesOf(given, faultOptions, readValue),
    match: valuesOf(given, matchFields, String),
  }
  const wanted = checkedFault(input)
  const { origin } = await findSandbox(url, io.env)
  const fault = await ask(origin, 'POST', input)
  print(io, json, fault, () => {
    const times = counted(wanted.times, 'time', 'times')
    return sentence(`${name} is set at ${origin}, for ${times}: it ${factsOf(wanted.fault).does}.`, proseWidth(io))
  })
}

async function clearFaults(io: Io, { url, json }: FaultFlags): Promise<undefined> {
  const { origin, faults } = await findSandbox(url, io.env)
  await ask(origin, 'DELETE')
  const text = `${counted(faults.length, 'fault', 'faults')} cleared at ${origin}.`
  print(io, json, { sandbox: origin, cleared: faults.length }, () => sentence(text, proseWidth(io)))
}

const valuesOf = (given: FaultFlags, options: { name: string }[], read: (text: string) => unknown) =>
  Object.fromEntries(
    options.flatMap(({ name }) => (typeof given[name] === 'string' ? [[name, read(given[name])]] : [])),
  )

const readValue = (text: string): unknown => (text === 'none' ? null : /^-?\d{1,15}$/.test(text) ? Number(text) : text)

/** Reads a fault. @throws Failure `invalid` that names each wrong option as it was typed */
function checkedFault(input: { fault: string }): ReturnType<typeof readFault> {
  const names = Object.keys(faultTable)
  if (!names.includes(input.fault)) {
    throw new Failure('invalid', `there is no fault '${input.fault}': name one of ${names.join(', ')}`)
  }
  try {
    return readFault(input)
  } catch (cause) {
    if (!(cause instanceof z.ZodError)) throw cause
    const fields = cause.issues.map((issue) => ({
      field: flagOf(String(issue.path.at(-1))),
      message: issue.code === 'invalid_type' ? `must be a ${issue.expected}` : issue.message,
    }))
    throw new Failure('invalid', `the fault ${input.fault} cannot be set so`, { fields, cause })
  }
}

function optionsText(fault: SandboxFault): string {
  const values: Record<string, unknown> = { ...fault }
  const options = (factsOf(fault.fault).options ?? []).map((name) => [name, values[name]] as const)
  return [...options, ...Object.entries(fault.match)]
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ')
}

/**
 * Finds a sandbox that answers: at `url`, or else at the default address or that of the demo.
 *
 * @throws Failure `unavailable` when no sandbox answers
 */
async function findSandbox(url: string | undefined, env: Io['env']) {
  const origins = url === undefined ? [DEFAULT_ORIGIN, ...demoOrigins(env)] : [originOf(url)]
  for (const origin of origins) {
    const answer = listShape.safeParse(await ask(origin, 'GET').catch(() => undefined))
    if (answer.success) return { origin, ...answer.data }
  }
  const start = `Start one by \`${commandLine('sandbox')}\`, or name its address by --url.`
  throw new Failure('unavailable', `no sandbox answers at ${origins.join(' or ')}.\n${start}`, { reason: NOT_RUNNING })
}

const listShape = z.object({ faults: z.array(z.custom<SandboxFault>()) })

function demoOrigins(env: Io['env']): string[] {
  const file = path.join(demoFolder(env), 'demo.json')
  return existsSync(file) ? [originOf(demoShape.parse(readJson(file)).supplier.baseUrl)] : []
}

const demoShape = configShape.pick({ supplier: true }).strip()

function originOf(url: string): string {
  if (URL.canParse(url) && /^https?:/.test(url)) return new URL(url).origin
  throw new Failure('invalid', `not an address of a sandbox: ${url}; give one such as ${DEFAULT_ORIGIN}`)
}

/** The time for an answer. A sandbox answers in milliseconds. */
const DEADLINE_MS = 10_000

const refusalShape = z.object({ error: z.string() })

/** Sends a request to the sandbox. @throws Failure `rejected` with the sandbox's own message */
async function ask(origin: string, method: string, body?: object): Promise<unknown> {
  const response = await fetch(`${origin}/sandbox/faults`, {
    method,
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    redirect: 'manual',
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  const answer: unknown = response.status === 204 ? undefined : await response.json()
  if (response.ok) return answer
  throw new Failure('rejected', `the sandbox at ${origin} refused: ${cell(refusalShape.parse(answer).error)}`)
}
