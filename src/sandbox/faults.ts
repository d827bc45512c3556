import { z } from 'zod'

/**
 * The faults that a test or a person can set, each used up after `times` matching requests, orders or deliveries.
 *
 * They are kept in memory only: a restarted sandbox has none.
 */
const requestFaults = ['answer-lost', 'error-before', 'error-after', 'slow', 'rate-limit'] as const
const orderFaults = [
  'out-of-stock',
  'insufficient-balance',
  'failed-order',
  'list-lag',
  'partial-keys',
  'hold-open',
] as const
const listFaults = ['short-pages', 'capped-total', 'filter-misses'] as const
const deliveryFaults = ['duplicate-delivery', 'reorder-deliveries', 'drop-delivery'] as const

/** A day: longer waits belong to the clock of a test, not to a fault. */
const delayMaxMs = 86_400_000

export const faultShape = z.strictObject({
  fault: z.enum([...requestFaults, ...orderFaults, ...listFaults, ...deliveryFaults]),
  /** How often it fires before it is used up. */
  times: z.number().int().positive().default(1),
  /** All named fields must match. Without `path` a request fault applies only to the POST that creates an order. */
  match: z
    .strictObject({
      /** The beginning of the order's external reference. */
      externalOrderId: z.string().min(1).optional(),
      productId: z.string().min(1).optional(),
      /** Path under the base address: `/orders` is that path and every path below it, `/` is every request. */
      path: z.string().startsWith('/').optional(),
      method: z.string().toUpperCase().optional(),
      /** Our name of an event, such as `order.completed`. */
      event: z.string().min(1).optional(),
    })
    .default({}),
  /** `slow`: the delay; `list-lag`: how long hidden; `partial-keys`: when the rest comes; `reorder-deliveries`: the longest wait. */
  delayMs: z.number().int().min(0).max(delayMaxMs).optional(),
  /** `slow`: wait `before` the request is run, or `after` it (the default). */
  stage: z.enum(['before', 'after']).default('after'),
  /** `error-before` and `error-after`: which failure is answered. */
  kind: z.enum(['internal', 'unavailable', 'in_progress']).default('internal'),
  /** `rate-limit`: seconds to wait; a text is sent unchanged; null sends no header. */
  retryAfter: z.union([z.number().int(), z.string(), z.null()]).default(1),
  /** `rate-limit`: whether a number is written as seconds or as the HTTP date of that instant. */
  retryAfterForm: z.enum(['seconds', 'date']).default('seconds'),
  /** `partial-keys`: how many come first (default: half of them, rounded down). */
  first: z.number().int().min(0).optional(),
  /** `short-pages`: most rows on a page, for any requested size; `capped-total`: the highest count that is shown. */
  most: z.number().int().positive().default(10),
  /** `partial-keys`: the status of the order while keys are missing. */
  status: z.enum(['completed', 'open']).default('completed'),
})
export type FaultName = z.infer<typeof faultShape>['fault']

/** An active fault: how often it can still fire and how often it has fired. */
export interface SandboxFault extends z.infer<typeof faultShape> {
  id: number
  left: number
  fired: number
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

/** More than a test run ever sets; an endless loop fails instead of filling the memory. */
const faultsMax = 10_000

export interface Faults {
  add: (wanted: z.input<typeof faultShape>) => SandboxFault
  list: () => SandboxFault[]
  clear: () => void
  /** Removes a fault, also one that could still fire. */
  remove: (id: number) => void
  /** Uses up one firing of the oldest fault of that name that matches the subject. */
  take: (name: FaultName, subject: Subject, applies?: (fault: SandboxFault) => boolean) => SandboxFault | undefined
}

export function createFaults(): Faults {
  let faults: SandboxFault[] = []
  let lastId = 0
  return {
    add: (wanted) => {
      if (faults.length >= faultsMax) throw new RangeError(`there are ${faultsMax} faults already; delete some first`)
      const read = faultShape.parse(wanted)
      lastId += 1
      const fault = { ...read, id: lastId, left: read.times, fired: 0 }
      faults.push(fault)
      return { ...fault }
    },
    list: () => faults.map((fault) => ({ ...fault })),
    clear: () => {
      faults = []
    },
    remove: (id) => {
      faults = faults.filter((one) => one.id !== id)
    },
    take: (name, subject, applies = () => true) => {
      const fault = faults.find((one) => one.fault === name && one.left > 0 && matches(one, subject) && applies(one))
      if (!fault) return undefined
      fault.left -= 1
      fault.fired += 1
      return { ...fault }
    },
  }
}

function matches({ fault, match }: SandboxFault, subject: Subject): boolean {
  const forRequests: readonly string[] = requestFaults
  if (forRequests.includes(fault) && match.path === undefined && !subject.createsOrder) return false
  if (match.path !== undefined && !isUnder(subject.path ?? '', match.path)) return false
  if (match.method !== undefined && match.method !== subject.method) return false
  if (match.event !== undefined && match.event !== subject.event) return false
  if (match.productId !== undefined && match.productId !== subject.productId) return false
  return match.externalOrderId === undefined || (subject.externalOrderId ?? '').startsWith(match.externalOrderId)
}

const isUnder = (path: string, parent: string): boolean =>
  parent === '/' || path === parent || path.startsWith(`${parent}/`)
