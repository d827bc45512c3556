import { existsSync, statSync } from 'node:fs'
import path from 'node:path'

/** The codes of a Failure, as clients of the API read them. They are few: one for each reaction of a caller. */
export const failureCodes = {
  invalid: 'some input is wrong; `fields` names each fault',
  unauthenticated: 'no token, or one that is unknown, revoked or expired',
  forbidden: 'the token lacks the role, the scope or the store',
  not_found: 'there is no such record or path',
  conflict: 'the state of the record does not allow it',
  rejected: 'the supplier or the state of the service says no for good',
  unavailable: 'not now: try again after Retry-After',
  unknown_outcome: 'it may have happened or not: look before you repeat it; an order may simply be posted again',
  internal: 'a fault of Quayside; its log has it under the request id',
}
export type FailureCode = keyof typeof failureCodes

/** Finer names for machines, where the code alone says too little. Clients of the API get the name in place of the code. */
export const failureReasons = {
  all_handed_over: 'the store has all keys of the purchase: hand over what came, and it is done',
  ambiguous_reference: 'several stores have an order under the reference: name one by `store`',
  ambiguous_sku: 'the SKU stands for more than one listing or offer: name a listing by its `id`',
  backup_failed: 'no backup was made; the message says why',
  backup_underway: 'another backup is being made',
  beyond_order: 'the other purchases of its line have its units: one more is beyond the order',
  body_deleted: 'the body of the delivery was deleted after its time',
  bought_already: 'a key of the line is bought, and waits for a decision',
  busy: 'the purchase is being worked on: try again',
  changed: 'it has changed since it was shown: read it again',
  claimed: 'another claim is about the key already',
  dry_run_under_way: 'there is one dry run at a time',
  ended: 'nothing of it is under way',
  evidence_changed: 'the evidence has changed since that version: read it again',
  frozen: 'buying is frozen',
  ignored: 'the listing is ignored',
  key_known: 'a purchase has this licence key already',
  keys_of_another_order: 'the purchase has keys of another order of the supplier',
  made_by_hand: "webhooks are made in the supplier's dashboard: make one there, then add it",
  new_database_uncompared: 'the database is new, and the orders of the supplier were not compared with it yet',
  no_answer: 'the supplier gave no whole answer',
  no_api: 'the process is a worker, and has no API: ask a web process',
  no_callbacks: 'this kind of store gets no callbacks',
  no_console: 'the configuration has switched the console off, or its port is taken',
  no_keys: 'no licence key has come: there is nothing to hand over',
  no_known_sku: 'no line of the order is one of the listings',
  no_next_key: 'no next key-encryption key is configured',
  no_page: 'the order has no page of keys',
  no_resend: 'this kind of store writes to its customers itself',
  no_shop: 'no shop is named whose orders can be read',
  no_webhook: 'there is no webhook yet: create one',
  no_worker: 'no process is the worker, and nothing was done: start one',
  not_decidable: 'the state of the purchase leaves nothing to decide',
  not_held: 'it is not held',
  not_ignored: 'the listing is not ignored',
  not_linked: 'the listing has no link',
  not_open: 'the claim has ended',
  not_replaced: 'no later webhook has taken over: rotate first',
  not_retriable: 'the purchase cannot be bought again: it has not ended, or a later one was bought for it',
  not_taken: 'the shop has the order, and it is not bought',
  order_changed: 'its order has fewer units now than its customer has keys',
  order_foreign: 'the order of the supplier is for something else',
  order_held: 'its order is not paid in the shop now, or held there',
  order_taken: 'the order of the supplier belongs to another purchase',
  order_too_old: 'its shop does not show so old an order any more',
  order_unknown: 'the supplier has no such order',
  other_currency: 'no rate is configured from the currency of the price to that of the supplier',
  rate_limited: 'the rate limit of the supplier is used up',
  redirect: 'the supplier redirects, which is refused',
  reference_reused: 'a different order has this reference',
  restore_unfinished: 'the orders of the supplier are not reattached yet after a restore',
  rotated_meanwhile: 'the secret was rotated by another call',
  same_key: 'the next key-encryption key is the one in use',
  server_error: 'the supplier failed',
  set_up_done: 'this installation has its supplier already',
  set_up_taken: 'another person is at the set-up',
  set_up_untried: 'no supplier was tested, or its test failed',
  settings_changed: 'another revision of the settings came meanwhile: read them again',
  settings_changing: 'the settings are being changed: nothing was done, try again',
  settings_first: 'the first revision of the settings cannot be undone',
  settings_in_file: 'the settings are lines of the configuration file: change them there, or adopt them',
  store_off: 'the store is not live yet: no order of it is taken',
  store_under_way: 'the store still sells, or has orders, purchases or messages under way',
  supplier_rejected: 'the supplier refused the request; the message has its code',
  too_large: 'the body, or one part of it, is too large',
  too_many_purchases: 'the order makes too many purchases: split it into several',
  too_many_secrets: 'too many callback secrets are valid: wait until one expires',
  too_many_watchers: 'too many clients watch the events already',
  unauthorized: 'the supplier refuses our API key',
  unexpected_status: 'the supplier answered with a status that is not known',
  unreachable: 'the supplier cannot be reached: nothing was sent',
  unreadable: 'the answer of the supplier cannot be read',
  unsupported_media_type: 'the body has another type, or is compressed',
  withdrawn: 'the page of keys is withdrawn already',
  wrong_key: 'the key-encryption key does not open the database',
} as const

/** Finer names for commands on this machine, such as a restore. The API never answers with these names. */
export const localReasons = [
  'address_in_use',
  'backup_damaged',
  'copy_differs',
  'cost',
  'database_exists',
  'database_in_use',
  'database_left',
  'database_moved',
  'database_newer',
  'empty',
  'migration_changed',
  'network_file_system',
  'no_database',
  'no_settings',
  'other_stores',
  'refused_settings',
  'service_not_running',
  'two_homes',
] as const

export type FailureReason = keyof typeof failureReasons | 'not_found' | (typeof localReasons)[number]

/** One fault of an input: which field, what is wrong with it and what would be right. */
export interface FieldFault {
  /** Path of the field, dots between its parts: `lines.0.quantity`. */
  field: string
  message: string
  /** The line of the file in which the field is, where it is in a file. */
  line?: number
}

/**
 * The one class for what goes wrong. Expected outcomes, such as a rejected purchase, are returned and not thrown.
 *
 * `message` is shown to people. Only the text of an `internal` failure stays in the log.
 */
export class Failure extends Error {
  readonly code: FailureCode
  /** Set with `invalid`: every fault of the input, not only the first. */
  readonly fields: FieldFault[]
  readonly reason: FailureReason | undefined
  /** The request id of the answer that reported this failure: the supplier's, or on the command line the service's. */
  readonly requestId: string | undefined

  constructor(
    code: FailureCode,
    message: string,
    detail: Partial<Pick<Failure, 'fields' | 'reason' | 'requestId'>> & { cause?: unknown } = {},
  ) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.name = 'Failure'
    this.code = code
    this.fields = detail.fields ?? []
    this.reason = detail.reason
    this.requestId = detail.requestId
  }
}

/** The failure of a write that other settings overtook. It has changed nothing. */
export const settingsChanging = (): Failure =>
  new Failure('unavailable', 'the settings are being changed: nothing was done, try again', {
    reason: 'settings_changing',
  })

/** A failure because the state of a record does not allow what was asked. */
export const conflict = (reason: FailureReason, message: string): Failure =>
  new Failure('conflict', message, { reason })

/** Returns the code of any thrown value. The code of a value that is no Failure is `internal`, so that nothing leaks. */
export const codeOf = (error: unknown): FailureCode => (error instanceof Failure ? error.code : 'internal')

/**
 * Returns the text of any thrown value, for logs and for people who run the service.
 *
 * @param file what was read or written, see `systemFailure`
 */
export function messageOf(error: unknown, file?: string): string {
  // Node throws an error of this class, without a text, when no address of a host answers.
  if (error instanceof AggregateError && error.message === '') return messageOf(error.errors[0], file)
  const shown = systemFailure(error, file) ?? error
  return shown instanceof Error ? shown.message : String(shown)
}

/** The fields that Node and SQLite give an error of the operating system. */
interface SystemError extends NodeJS.ErrnoException {
  /** The new path, where the call was a rename. */
  dest?: string
  address?: string
  port?: number
}

/**
 * Makes a sentence from an error of the operating system that a person can cause and correct. The sentence names the file or
 * the port, and says what to do.
 *
 * @param given the file, for errors that do not name it
 * @returns undefined for any other value
 */
export function systemFailure(error: unknown, given?: string): Failure | undefined {
  if (!(error instanceof Error) || !('code' in error) || error instanceof Failure) return undefined
  const facts = error as SystemError
  const [code, message] = systemFault(facts, facts.dest ?? facts.path ?? given) ?? []
  if (code === undefined || message === undefined) return undefined
  const reason = facts.code === 'EADDRINUSE' ? 'address_in_use' : undefined
  return new Failure(code, message, { cause: error, reason })
}

function systemFault(
  { code, syscall, address, port }: SystemError,
  given: string | undefined,
): [FailureCode, string] | undefined {
  const file = given ?? 'the file'
  const disk = given === undefined ? 'the disk' : `the disk of ${given}`
  const isListening = syscall === 'listen'
  switch (code) {
    case 'EADDRINUSE':
      return [
        'conflict',
        `another program listens at ${address}:${port}, perhaps the demo: stop it, or take another port by --port`,
      ]
    case 'EADDRNOTAVAIL':
      if (!isListening) return undefined
      return ['invalid', `this machine has no address ${address}: listen at one that it has, such as 127.0.0.1`]
    case 'EACCES':
    case 'EPERM':
      if (isListening) return ['forbidden', `this user may not listen at port ${port}: take one from 1024 on by --port`]
      return ['forbidden', `this user may not read or write ${file}: change its owner or mode, or those of its folder`]
    case 'ENOENT':
      // /proc gives this error for every new name, although the folder above exists.
      if (syscall === 'mkdir' && given !== undefined && existsSync(path.dirname(given))) {
        return ['invalid', `no folder can be made in ${path.dirname(given)}: name another one`]
      }
      return given === undefined ? undefined : ['not_found', missing(given)]
    case 'ENOTDIR':
    case 'EEXIST': {
      const blocking = given === undefined ? undefined : fileAbove(given)
      if (blocking === undefined) return undefined
      return ['conflict', `${blocking} is a file where a folder is needed: move it away, or name another folder`]
    }
    case 'EISDIR':
    case 'ERR_FS_EISDIR':
      return ['invalid', `${file} is a folder where a file is needed: name a file`]
    case 'EROFS':
    case 'SQLITE_READONLY':
      return ['unavailable', `${file} can only be read: its disk or its mode allows no writing`]
    case 'ENOSPC':
    case 'EDQUOT':
    case 'SQLITE_FULL':
      return ['unavailable', `${disk} is full: make room, then try again`]
    case 'SQLITE_NOTADB':
      return ['invalid', `${file} is no SQLite database: name another file, or move it away`]
    case 'EMFILE':
    case 'ENFILE':
      return ['unavailable', 'too many files are open: raise the limit by `ulimit -n`, then try again']
    case 'EIO':
      return ['unavailable', `${disk} cannot be read or written: check it`]
    default:
      return undefined
  }
}

function missing(file: string): string {
  const folder = path.dirname(file)
  if (existsSync(folder)) return `there is no ${file}: check the name`
  return `there is no folder ${folder}: make it by \`mkdir -p ${folder}\`, or name another one`
}

/** The file that stands where a path needs a folder. */
function fileAbove(file: string): string | undefined {
  for (let there = path.resolve(file); ; there = path.dirname(there)) {
    if (existsSync(there)) return statSync(there).isDirectory() ? undefined : there
  }
}
