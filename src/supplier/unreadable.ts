import type { Placement } from '../domain/supplier.ts'
import { Failure } from '../errors.ts'
import type { Page } from './read.ts'
import type { UnreadField } from './records.ts'

/** An unreadable answer: its request, and the field. */
interface UnreadableSample extends UnreadField {
  /** Method and path, ids left out: `GET /orders/{id}`. */
  request: string
  /** The supplier's id of the first such request. */
  requestId: string | undefined
  /** Other records of the same answer could be read. */
  partly: boolean
  /** The last requested id, where the request has one. */
  id?: string
}

/** One kind of answer that cannot be read at present. */
export interface UnreadableAnswer extends UnreadableSample {
  /** When the first of its kind came, epoch milliseconds. */
  since: number
}

/** The failure of a record or page whose field cannot be read. */
export class Unreadable extends Failure {
  readonly unread: UnreadField
  readonly requestId: string | undefined

  constructor(unread: UnreadField, message: string, requestId: string | undefined) {
    const { field } = unread
    super('unavailable', message, {
      reason: 'unreadable',
      fields: [{ field, message: 'missing, or not as the dialect says' }],
    })
    this.unread = unread
    this.requestId = requestId
  }
}

/** An answer that is no JSON: its bytes are not shown. */
export const NO_JSON: UnreadField = {
  field: '(the whole answer)',
  setting: 'envelope',
  seen: 'something that is no JSON',
}

/** Settings of fields around the records: a page without records proves these only. */
const AROUND = /^(envelope|lists|paging)/

export type Answers = ReturnType<typeof createAnswers>

/** Remembers which kinds of answers cannot be read, until an answer of the kind can be. */
export function createAnswers(now: () => number) {
  let known: readonly UnreadableAnswer[] = []

  function note(answer: UnreadableSample): void {
    const { request, setting, partly } = answer
    const earlier = known.find((one) => one.request === request && one.setting === setting)
    const { since = now(), requestId = answer.requestId } = earlier ?? {}
    const rest = known.filter((one) => one !== earlier)
    // A page with some readable records proves that the kind as a whole can be read.
    const left = partly ? rest.filter((one) => one.request !== request || one.partly) : rest
    known = [...left, { ...answer, since, requestId }]
  }

  function clear(request: string, which: (answer: UnreadableAnswer) => boolean = () => true): void {
    if (known.length > 0) known = known.filter((one) => one.request !== request || !which(one))
  }

  async function watched<T>(request: string, reading: Promise<T>, id?: string): Promise<T> {
    try {
      return await reading
    } catch (error) {
      if (error instanceof Failure && error.reason === 'unreadable') {
        const found = error instanceof Unreadable ? error : { unread: NO_JSON, requestId: undefined }
        const { field, setting, seen } = found.unread
        const { requestId } = found
        note({ request, field, setting, seen, requestId, partly: false, ...(id === undefined ? {} : { id }) })
      }
      throw error
    }
  }

  return {
    list: (): readonly UnreadableAnswer[] => known,

    /** @param id of the record, where the request names one */
    one: async <T>(request: string, reading: Promise<T | undefined>, id?: string): Promise<T | undefined> => {
      const record = await watched(request, reading, id)
      if (record !== undefined) clear(request)
      // A record that is gone cannot be read again.
      else clear(request, (answer) => answer.id === id)
      return record
    },

    /** @param all whether the page is of the whole list: an empty whole list has nothing that cannot be read */
    page: async <T>(
      request: string,
      reading: Promise<Page<T>>,
      { all, partly }: { all: boolean; partly: boolean },
    ): Promise<Page<T>> => {
      const page = await watched(request, reading)
      const [first] = page.unreadable
      const none = page.items.length === 0
      if (!first) clear(request, none && !all ? ({ setting }) => AROUND.test(setting) : undefined)
      else if (none || partly) {
        const { field, setting, seen, requestId } = first
        note({ request, field, setting, seen, requestId, partly: !none })
      } else clear(request)
      return page
    },

    /** @param unread finds the field; called only when the answer to the order cannot be read */
    placed: (request: string, placement: Placement, unread: () => UnreadField | undefined): void => {
      const { outcome, evidence } = placement
      if (outcome === 'accepted') clear(request)
      // A readable refusal says nothing about the records of orders.
      else if (outcome === 'rejected') clear(request, ({ setting }) => !setting.startsWith('order.'))
      else if (outcome === 'unknown' && placement.cause === 'disagrees') clear(request)
      const found = outcome === 'unknown' && placement.cause === 'unreadable' ? unread() : undefined
      if (!found) return
      const { field, setting, seen } = found
      note({ request, field, setting, seen, requestId: evidence.requestId, partly: false })
    },
  }
}
