import { pino } from 'pino'

/**
 * The fields that a log line may carry. Whatever is not listed does not compile, and is dropped when it comes anyway:
 * redaction by path leaks, an allow-list does not. Never add a field that may hold a key, a body or a token.
 */
const fieldNames = [
  'actor',
  'address',
  'after',
  'attempts',
  'before',
  'cause',
  'class',
  'code',
  'costFaults',
  'count',
  'cursor',
  'deliveryId',
  'detail',
  'durationMs',
  'error',
  'errors',
  'fieldsUnreadable',
  'file',
  'foreign',
  'generation',
  'id',
  'input',
  'kind',
  'line',
  'matched',
  'method',
  'missing',
  'notListed',
  'offersChanged',
  'offersGone',
  'offersNew',
  'offersSeen',
  'offersUnreadable',
  'orders',
  'orphans',
  'outcome',
  'pages',
  'pagesBroken',
  'path',
  'purchaseId',
  'reason',
  'reference',
  'refreshed',
  'requestId',
  'requests',
  'row',
  'runId',
  'settings',
  'state',
  'status',
  'store',
  'subject',
  'supplierOrderId',
  'type',
  'unreadable',
] as const

export type LogFields = Partial<Record<(typeof fieldNames)[number], string | number | boolean | null | undefined>>

/** One wide line per unit of work. `error`: someone must act now. `warn`: healed itself, or will be tried again. */
export interface Log {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

const allowed: ReadonlySet<string> = new Set(fieldNames)

/** @param write takes one finished line; a failing one never fails the work that logs */
export function createLog(options: { level: string; write: (line: string) => void }): Log {
  const logger = pino(
    { level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime, messageKey: 'event' },
    { write: options.write },
  )
  const line =
    (level: 'info' | 'warn' | 'error') =>
    (event: string, fields: LogFields = {}): void => {
      try {
        const kept = Object.entries(fields).filter(
          ([name, value]) => allowed.has(name) && (value === null || typeof value !== 'object'),
        )
        logger[level](Object.fromEntries(kept), event)
      } catch {
        // Work goes on without its log line: a broken pipe must not stop a purchase.
      }
    }
  return { info: line('info'), warn: line('warn'), error: line('error') }
}
