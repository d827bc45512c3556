/**
 * Suppliers that page their lists in other ways than by number, each as a public document describes it:
 *
 * - `token`: CodesWholesale API v3 (github.com/codeswholesale/codeswholesale-sdk-php): `continuationToken` beside the items, which
 *   the next request sends back; no count. This one leaves the token out of the last page, and keeps to pages of its own size.
 * - `cursor`: GiftAPI (docs.giftapi.ru): `per_page`, and `meta.next_cursor`, which is null on the last page.
 * - `offset`: gaming-goods.ru: `offset` and `limit`, a count, no flag.
 *
 * Records are written as the shipped dialect has them. A cursor stands for the record before it, so it stays right while the list
 * moves; its text has every character that an address must encode.
 */
import { onTestFinished } from 'vitest'
import type { Habit } from './catalogue-parties.ts'
import { idAt, productRecord } from './catalogue-world.ts'
import { sendJson, startHttp } from './supplier-server.ts'

type Row = Record<string, unknown>
interface PageAnswer {
  status: number
  rows: Row[]
  total: number
  next: string | undefined
}

export const cursorAfter = (id: string) => `${Buffer.from(`after ${id}>>?~`).toString('base64')}&/ +${id}`

export async function pagedSupplier(habit: Habit, { products = 0, sizeMax = 1_000 } = {}) {
  const lists: Record<'products' | 'orders', Row[]> = {
    products: Array.from({ length: products }, (_, place) => productRecord(idAt(place))),
    orders: [],
  }
  /** The place of each page that was asked for: the number of the first record in the list as it was. */
  const places: number[] = []
  const hooks: { tamper?: (answer: PageAnswer, place: number, list: string) => void } = {}
  const server = await startHttp(({ url }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://paged')
    const [, , name = '', id] = pathname.split('/')
    const list = lists[name as keyof typeof lists] ?? []
    const refuse = (status: number, code: string) =>
      sendJson(response, status, { success: false, error: { code, message: 'No.' }, request_id: 'r' })
    if (id !== undefined) {
      const record = list.find((one) => one.id === id)
      if (record) sendJson(response, 200, { success: true, data: record })
      else refuse(404, 'not_found')
      return
    }
    const given = searchParams.get(habit === 'token' ? 'continuationToken' : habit)
    const place =
      given === null
        ? 0
        : habit === 'offset'
          ? Number(given)
          : 1 + list.findIndex((one) => cursorAfter(String(one.id)) === given)
    if (given !== null && habit !== 'offset' && place === 0) {
      refuse(400, 'invalid_request')
      return
    }
    const size = Math.min(sizeMax, Number(searchParams.get(habit === 'cursor' ? 'per_page' : 'limit')))
    const rows = list.slice(place, place + size)
    const last = rows.at(-1)
    const next = last && place + size < list.length ? cursorAfter(String(last.id)) : undefined
    const answer: PageAnswer = { status: 200, rows, total: list.length, next }
    places.push(place)
    hooks.tamper?.(answer, place, name)
    if (answer.status !== 200) refuse(answer.status, answer.status === 410 ? 'gone' : 'invalid_request')
    else if (habit === 'token')
      sendJson(response, 200, { success: true, items: answer.rows, continuationToken: answer.next })
    else if (habit === 'cursor')
      sendJson(response, 200, { success: true, data: answer.rows, meta: { next_cursor: answer.next ?? null } })
    else sendJson(response, 200, { success: true, data: { items: answer.rows, total: answer.total } })
  })
  onTestFinished(() => server.close())
  return { baseUrl: `${server.origin}/v1`, lists, places, hooks, heard: server.heard }
}
