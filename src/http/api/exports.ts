import { z } from 'zod'
import { bodyColumns, deliveryColumns, earningColumns, keyColumns, orderColumns } from '../../domain/data-export.ts'
import { deliveryStates } from '../../domain/labels.ts'
import { lineStates, orderStates } from '../../domain/store-order.ts'
import { type DeliveryRow, exportDeliveries } from '../../inbox/delivery-export.ts'
import { csvText, FILE_START } from '../../listings/links-file.ts'
import { exportEarnings } from '../../ordering/earnings.ts'
import { exportOrders, type OrderRow } from '../../ordering/order-export.ts'
import { choice, eventName, exportBody, fromStore, inStore, queryInstant, search } from '../input.ts'
import { type ApiContext, admin, ok, operation, rowsFile, type SentFile, viewer } from '../operation.ts'
import { earningRowShape, earningShape, earningsAsked, earningsQuery, shownEarnings } from './activity.ts'
import { Delivery } from './deliveries.ts'
import { head, LineEntry } from './orders.ts'
import { amount, amountOf, component, count, currency, maybeAt, view, words } from './views.ts'

const orderShape = {
  ...LineEntry.shape,
  ...head,
  reference: z.string(),
  state: z.enum(orderStates),
  line: z.string(),
  sku: z.string(),
  lineState: z.enum(lineStates),
  deliveredAt: maybeAt,
  keysOpened: count,
  keysOpenedAt: maybeAt,
  unitPrice: amount.nullable(),
  unitPriceCurrency: currency.nullable(),
  cost: amount.nullable(),
  costCurrency: currency.nullable(),
  supplierOrders: z.array(z.string()),
}

/** Describes a kind of file: the name, the columns with their meaning, and the rows as they are sent. */
function fileKind<V, K extends string>(
  names: { file: string; row: string },
  shape: Record<NoInfer<K>, z.ZodType>,
  columns: Record<K, string>,
  show: (row: V) => object,
) {
  const cells = (Object.keys(columns) as K[]).map((name) => [name, shape[name].describe(columns[name])])
  const row: z.ZodType<object, object> = component(names.row, Object.fromEntries(cells))
  return { name: names.file, columns: Object.keys(columns), row: view<V, typeof row>(row, show) }
}

const orderCells = ({ order, line, keys, openings }: OrderRow) => {
  const costCurrency = line.purchases[0]?.currency ?? null
  return {
    ...order,
    ...line,
    state: order.state,
    line: line.id,
    lineState: line.state,
    deliveredAt: line.lastKeyAt,
    keysOpened: openings.length,
    keysOpenedAt: openings.length === 0 ? null : Math.min(...openings.map(({ at }) => at)),
    unitPrice: amountOf(line.unitPriceMinor, line.currency ?? ''),
    unitPriceCurrency: line.currency,
    cost: amountOf(line.costMinor, costCurrency ?? ''),
    costCurrency,
    supplierOrders: line.purchases.flatMap(({ supplierOrderId }) => supplierOrderId ?? []),
    keys,
  }
}
const orderFile = fileKind({ file: 'orders', row: 'OrderRow' }, orderShape, orderColumns, orderCells)
const keyedOrderFile = fileKind(
  { file: 'orders-with-keys', row: 'KeyedOrderRow' },
  { ...orderShape, keys: z.array(z.string()) },
  { ...orderColumns, ...keyColumns },
  orderCells,
)
const deliveryCells = (row: DeliveryRow) => row
const deliveryShape = { ...Delivery.shape, state: z.enum(deliveryStates) }
const deliveryFile = fileKind({ file: 'deliveries', row: 'DeliveryRow' }, deliveryShape, deliveryColumns, deliveryCells)
const fullDeliveryFile = fileKind(
  { file: 'deliveries-with-bodies', row: 'FullDeliveryRow' },
  { ...deliveryShape, body: words },
  { ...deliveryColumns, ...bodyColumns },
  deliveryCells,
)

type EarningCells = Omit<ReturnType<typeof shownEarnings>, 'sums' | 'margin'> &
  ReturnType<typeof shownEarnings>['sums'][number] & { margin: string | null }
const earningFile = fileKind(
  { file: 'money', row: 'EarningCells' },
  { ...earningRowShape, currency, ...earningShape, margin: earningShape.cost.nullable() },
  earningColumns,
  (row: EarningCells) => row,
)

const formats = ['csv', 'jsonl'] as const
type Format = (typeof formats)[number]
const format = choice(formats, '`csv` (default), or `jsonl`: a line of JSON for each row')

function fileOf<V>(
  { name, columns, row }: { name: string; columns: string[]; row: z.ZodType<object, V> },
  format: Format = 'csv',
  pages: AsyncGenerator<V[]>,
): SentFile {
  async function* pieces() {
    if (format === 'csv') yield FILE_START + csvText([columns])
    for await (const rows of pages) {
      const shown = rows.map((one) => row.parse(one) as Record<string, unknown>)
      yield format === 'csv'
        ? csvText(shown.map((one) => columns.map((column) => cellOf(one[column]))))
        : shown.map((one) => `${JSON.stringify(one)}\n`).join('')
    }
  }
  const type = format === 'csv' ? 'text/csv' : 'application/x-ndjson'
  return { name: `${name}.${format}`, type, pieces: pieces() }
}

/** Returns the text of a cell. Several values stand below each other in the cell. */
const cellOf = (value: unknown): string => (Array.isArray(value) ? value.join('\n') : String(value ?? ''))

/** The operations that export data. The audit has an entry for each export. */
export function exportOperations({ ordering }: ApiContext) {
  const orders = {
    query: {
      from: queryInstant('Only orders that were taken then or later'),
      to: queryInstant('Only orders that were taken before'),
      store: inStore,
      state: choice(orderStates, 'Only orders in this state, as it was reported to their store; `open` until then'),
      search,
      format,
    },
    success: { 200: 'A row for each line of an order, the newest orders first' },
  }
  const deliveries = {
    query: {
      from: queryInstant('Only deliveries that arrived then or later'),
      to: queryInstant('Only deliveries that arrived before'),
      store: fromStore,
      state: choice(deliveryStates, 'Only deliveries in this state'),
      event: eventName,
      format,
    },
    success: { 200: 'A row for each delivery, newest first' },
  }
  return {
    exportOrders: operation({
      ...orders,
      route: 'GET /exports/orders',
      allowed: viewer,
      summary: 'Store orders as a file, without licence keys.',
      answer: rowsFile(orderFile.row),
      handle: async ({ caller: { actor }, query: { format, ...filter } }) =>
        ok(fileOf(orderFile, format, await exportOrders(ordering, filter, { actor }))),
    }),
    exportOrdersWithKeys: operation({
      ...orders,
      route: 'POST /exports/orders',
      allowed: admin,
      summary: 'Store orders as a file, with the licence keys that stores have, or are being given.',
      body: exportBody,
      answer: rowsFile(keyedOrderFile.row),
      handle: async ({ caller: { actor }, query: { format, ...filter }, body }) =>
        ok(fileOf(keyedOrderFile, format, await exportOrders(ordering, filter, { ...body, actor }))),
    }),
    exportEarnings: operation({
      route: 'GET /exports/money',
      query: { ...earningsQuery, format },
      success: { 200: 'A row for each currency of a period, and of a store or product in it, the newest period first' },
      allowed: viewer,
      summary: 'Revenue, cost, refunds and margin as a file.',
      answer: rowsFile(earningFile.row),
      async handle({ caller: { actor }, query: { format, ...query } }) {
        const now = ordering.now()
        const pages = await exportEarnings(ordering, earningsAsked(query, now), actor)
        async function* cells() {
          for await (const rows of pages) {
            yield rows
              .map((row) => shownEarnings(row, now))
              .flatMap(({ sums, margin, ...row }) =>
                sums.map((sum) => ({ ...row, ...sum, margin: margin?.amount ?? null })),
              )
          }
        }
        return ok(fileOf(earningFile, format, cells()))
      },
    }),
    exportDeliveries: operation({
      ...deliveries,
      route: 'GET /exports/deliveries',
      allowed: viewer,
      summary: 'Deliveries as a file, without their bodies.',
      answer: rowsFile(deliveryFile.row),
      handle: async ({ caller: { actor }, query: { format, ...filter } }) =>
        ok(fileOf(deliveryFile, format, await exportDeliveries(ordering, filter, { actor }))),
    }),
    exportDeliveriesWithBodies: operation({
      ...deliveries,
      route: 'POST /exports/deliveries',
      allowed: admin,
      summary: 'Deliveries as a file, with their bodies as they were received.',
      body: exportBody,
      answer: rowsFile(fullDeliveryFile.row),
      handle: async ({ caller: { actor }, query: { format, ...filter }, body }) =>
        ok(fileOf(fullDeliveryFile, format, await exportDeliveries(ordering, filter, { ...body, actor }))),
    }),
  }
}
