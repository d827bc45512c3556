import { z } from 'zod'

/** The things that a fault can apply to, and the fields of `match` that choose among them. */
export const faultSubjects = {
  request: {
    title: 'Faults of a request; without `path`, of the POST that creates an order',
    match: ['path', 'method', 'externalOrderId', 'productId'],
  },
  order: { title: 'Faults of an order that is placed', match: ['externalOrderId', 'productId'] },
  list: { title: 'Faults of a list', match: ['path', 'method'] },
  delivery: { title: 'Faults of a webhook delivery', match: ['event', 'externalOrderId', 'productId'] },
} as const

interface FaultFacts {
  of: keyof typeof faultSubjects
  does: string
  /** The options that the fault reads beside `times` and `match`. */
  options?: readonly string[]
}

/**
 * The faults that a test or a person can set. A fault is used up after `times` matching requests, orders or deliveries.
 *
 * Set faults are kept in memory only: a restarted sandbox has no faults.
 */
export const faultTable = {
  'answer-lost': { of: 'request', does: 'runs the request, then hangs up without an answer' },
  'error-before': { of: 'request', does: 'answers with an error and runs nothing', options: ['kind'] },
  'error-after': { of: 'request', does: 'runs the request, then answers with an error', options: ['kind'] },
  slow: { of: 'request', does: 'answers late', options: ['delayMs', 'stage'] },
  'rate-limit': { of: 'request', does: 'answers 429 and runs nothing', options: ['retryAfter', 'retryAfterForm'] },
  'out-of-stock': { of: 'order', does: 'refuses the order as sold out' },
  'insufficient-balance': { of: 'order', does: 'refuses the order for lack of balance' },
  'failed-order': { of: 'order', does: 'takes the order, then fails it and gives the money back' },
  'list-lag': { of: 'order', does: 'leaves the new order out of the list for a while', options: ['delayMs'] },
  'partial-keys': {
    of: 'order',
    does: 'hands out some keys first and the others later',
    options: ['first', 'delayMs', 'status'],
  },
  'hold-open': { of: 'order', does: 'keeps the order open until a control moves it' },
  'short-pages': { of: 'list', does: 'gives fewer rows on a page than were asked for', options: ['most'] },
  'capped-total': { of: 'list', does: 'counts no more than `most`', options: ['most'] },
  'filter-misses': { of: 'list', does: 'finds no order by its reference' },
  'duplicate-delivery': { of: 'delivery', does: 'sends a delivery twice' },
  'reorder-deliveries': {
    of: 'delivery',
    does: 'holds a delivery back until the next one is out',
    options: ['delayMs'],
  },
  'drop-delivery': { of: 'delivery', does: 'never sends a delivery' },
} as const satisfies Record<string, FaultFacts>
export type FaultName = keyof typeof faultTable

export const factsOf = (fault: FaultName): FaultFacts => faultTable[fault]

/** The longest wait is a day. Longer waits belong to the clock of a test, not to a fault. */
const delayMaxMs = 86_400_000

/** A fault applies only where all fields that are set match. */
const matchShape = z.strictObject({
  path: z
    .string()
    .startsWith('/')
    .optional()
    .describe('this path of the API and all below it, such as `/orders`; `/` is every request'),
  method: z.string().toUpperCase().optional().describe('the method of the request'),
  externalOrderId: z.string().min(1).optional().describe("the beginning of the order's reference"),
  productId: z.string().min(1).optional().describe('the id of the product'),
  event: z.string().min(1).optional().describe('the event, such as `order.completed`'),
})

const faultShape = z.strictObject({
  fault: z.enum(Object.keys(faultTable) as [FaultName, ...FaultName[]]),
  times: z.number().int().positive().default(1).describe('how often it fires before it is used up'),
  match: matchShape.default({}),
  delayMs: z
    .number()
    .int()
    .min(0)
    .max(delayMaxMs)
    .optional()
    .describe(
      'milliseconds: how late the answer is (1000 without it), how long the order is hidden or the delivery held back, or when the other keys come',
    ),
  stage: z.enum(['before', 'after']).default('after').describe('waits `before` or `after` the request is run'),
  kind: z
    .enum(['internal', 'unavailable', 'in_progress'])
    .default('internal')
    .describe('which error: `internal`, `unavailable` or `in_progress`'),
  retryAfter: z
    .union([z.number().int(), z.string(), z.null()])
    .default(1)
    .describe('seconds to wait; a text is sent as it is, null (`none` on the command line) sends no header'),
  retryAfterForm: z
    .enum(['seconds', 'date'])
    .default('seconds')
    .describe('`seconds`, or `date` for the HTTP date of that instant'),
  first: z.number().int().min(0).optional().describe('how many keys come first; half of them without it'),
  most: z.number().int().positive().default(10).describe('most rows on a page, or the highest count'),
  status: z
    .enum(['completed', 'open'])
    .default('completed')
    .describe('the order is `completed` or `open` while keys are missing'),
})

/** The options of faults (the fields of `match` follow), each with its meaning and its default. */
export const faultOptions = rowsOf(faultShape.omit({ fault: true, match: true }))
export const matchFields = rowsOf(matchShape)

function rowsOf({ shape }: z.ZodObject): { name: string; does: string }[] {
  return Object.entries(shape).map(([name, field]) => {
    const { data } = field.safeParse(undefined)
    const { description = '' } = field
    return { name, does: data === undefined ? description : `${description} (default: ${String(data)})` }
  })
}

/**
 * Reads a fault as a person sets it.
 *
 * @throws z.ZodError with every mistake of the input; an option that the fault does not read is a mistake
 */
export function readFault(input: unknown): z.infer<typeof faultShape> {
  readableShape.parse(input)
  return faultShape.parse(input)
}

const readableShape = z
  .looseObject({ fault: faultShape.shape.fault, match: z.looseObject({}).default({}) })
  .superRefine(({ fault, match, ...options }, context) => {
    const { of, options: own = [] } = factsOf(fault)
    const readable: readonly string[] = ['times', ...own]
    const choosable: readonly string[] = faultSubjects[of].match
    const refuse = (path: string[]) => context.addIssue({ code: 'custom', path, message: `${fault} does not read it` })
    for (const name of Object.keys(options)) if (!readable.includes(name)) refuse([name])
    for (const name of Object.keys(match)) if (!choosable.includes(name)) refuse(['match', name])
  })

export interface SandboxFault extends z.infer<typeof faultShape> {
  id: number
  left: number
  fired: number
  /** The reference of the order for which it fired last; null before, and where that order has none. */
  firedFor: string | null
}

/** A request, an order or a delivery to which a fault may apply. */
export interface Subject {
  externalOrderId?: string | null | undefined
  productId?: string | undefined
  path?: string
  method?: string
  event?: string
  /** Set for the POST that creates an order. */
  createsOrder?: boolean
}

/** No test run sets so many faults. Thanks to this limit, an endless loop fails instead of filling the memory. */
const faultsMax = 10_000

export type Faults = ReturnType<typeof createFaults>

export function createFaults() {
  let faults: SandboxFault[] = []
  let lastId = 0
  return {
    add: (wanted: z.input<typeof faultShape>): SandboxFault => {
      if (faults.length >= faultsMax) throw new RangeError(`there are ${faultsMax} faults already; delete some first`)
      const read = faultShape.parse(wanted)
      lastId += 1
      const fault = { ...read, id: lastId, left: read.times, fired: 0, firedFor: null }
      faults.push(fault)
      return { ...fault }
    },
    list: (): SandboxFault[] => faults.map((fault) => ({ ...fault })),
    clear: (): void => {
      faults = []
    },
    /** Removes a fault, even if it could still fire. */
    remove: (id: number): void => {
      faults = faults.filter((one) => one.id !== id)
    },
    /** Uses up one firing of the oldest fault of that name that matches the subject. */
    take: (name: FaultName, subject: Subject): SandboxFault | undefined => {
      const fault = faults.find((one) => one.fault === name && one.left > 0 && matches(one, subject))
      if (!fault) return undefined
      fault.left -= 1
      fault.fired += 1
      fault.firedFor = subject.externalOrderId ?? null
      return { ...fault }
    },
  }
}

function matches({ fault, match }: SandboxFault, subject: Subject): boolean {
  const { of } = factsOf(fault)
  if (of === 'request' && match.path === undefined && !subject.createsOrder) return false
  if (match.path !== undefined && !isUnder(subject.path ?? '', match.path)) return false
  if (match.method !== undefined && match.method !== subject.method) return false
  if (match.event !== undefined && match.event !== subject.event) return false
  if (match.productId !== undefined && match.productId !== subject.productId) return false
  return match.externalOrderId === undefined || (subject.externalOrderId ?? '').startsWith(match.externalOrderId)
}

const isUnder = (path: string, parent: string): boolean =>
  parent === '/' || path === parent || path.startsWith(`${parent}/`)
