/** The least that a sync must do: the same pages, fetched and parsed, the next asked for ahead; one select a row. */
import Connection from 'better-sqlite3'
import { Agent, request } from 'undici'

type Product = Record<string, string | number | boolean>

/** @param inserts also stores the rows, a page in a transaction; the file has the tables of the program */
export async function runFloor(file: string, baseUrl: string, apiKey: string, inserts: boolean): Promise<number> {
  const db = new Connection(file)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  const select = db.prepare('select * from offers where product_id = ?')
  const insert = db.prepare(`insert into offers (product_id, sku, name, category, cost_minor, base_price_minor,
    cashback_minor, currency, local_stock, provider_stock, available, origin, as_of, changed_at)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const minor = (text: unknown) => Math.round(Number(text) * 100)
  const store = db.transaction((items: Product[]) => {
    for (const one of items) {
      const { id, sku, name, category, currency, local_stock, provider_stock, fulfillment_origin: origin } = one
      const prices = [minor(one.api_price), minor(one.base_price), minor(one.cashback), currency]
      const at = Date.parse(String(one.updated_at))
      insert.run(id, sku, name, category, ...prices, local_stock, provider_stock, one.available ? 1 : 0, origin, at, at)
    }
  })
  const dispatcher = new Agent({ connections: 1 })
  const get = async (page: number) => {
    const url = `${baseUrl}/products?page=${page}&limit=100`
    const { body } = await request(url, { dispatcher, headers: { 'x-api-key': apiKey } })
    return ((await body.json()) as { data: { items: Product[]; total: number } }).data
  }
  let next = get(1)
  for (let page = 1; ; page += 1) {
    const { items, total } = await next
    const more = page * 100 < total
    if (more) next = get(page + 1)
    for (const { id } of items) select.get(id)
    if (inserts) store(items)
    if (!more) return total
  }
}
