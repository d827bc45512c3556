/** Exports deliveries as rows, page by page, so that only one page of deliveries is in memory. */

import { setImmediate as pause } from 'node:timers/promises'
import type { Context } from '../context.ts'
import { type ExportFilter, filterText } from '../domain/data-export.ts'
import { counted } from '../domain/figures.ts'
import type { DeliveryState } from '../domain/labels.ts'
import { idBound } from '../ids.ts'
import { bodiesOf, type Delivery, deliveriesWithBody, listDeliveries } from '../storage/deliveries.ts'
import { audited } from '../storage/evidence.ts'
import { storeSourceId } from './sources.ts'

interface DeliveryExport extends Omit<ExportFilter, 'state'> {
  state?: DeliveryState | undefined
  event?: string | undefined
}

type Head = Omit<Delivery, 'ciphertext'>

export interface DeliveryRow extends Head {
  /** Null where the body was not asked for, or was deleted. */
  body: string | null
}

type Exporting = Pick<Context, 'db' | 'vault' | 'now' | 'newId'>

/** How many deliveries a page has. With bodies of 256 KiB a page takes 12 MiB. */
const PAGE_DELIVERIES = 50

/**
 * Exports deliveries, newest first, each in its state when it is read. Before the first row is read, the audit records who
 * asked for what. With a reason, the audit also records how many bodies the export can show at most.
 *
 * @param asked with a `reason` the bodies are opened too
 */
export async function exportDeliveries(
  exporting: Exporting,
  filter: DeliveryExport,
  asked: { actor: string; reason?: string },
): Promise<AsyncGenerator<DeliveryRow[]>> {
  const { db } = exporting
  const { actor, reason } = asked
  const named = filterText('deliveries', filter, filter.event)
  if (reason === undefined) {
    await db.commit([audited(exporting, actor, 'delivery.export', 'deliveries', named)])
    return rowsOf(exporting, filter, false)
  }
  let count = 0
  for await (const rows of pagesOf(exporting, filter)) count += (await db.query(deliveriesWithBody(idsOf(rows)))).length
  const what = `${counted(count, 'body', 'bodies')}, ${named}: ${reason}`
  await db.commit([audited(exporting, actor, 'delivery.reveal', 'deliveries', what)])
  return rowsOf(exporting, filter, true)
}

async function* rowsOf(
  exporting: Exporting,
  filter: DeliveryExport,
  withBodies: boolean,
): AsyncGenerator<DeliveryRow[]> {
  const { db, vault } = exporting
  for await (const rows of pagesOf(exporting, filter)) {
    const sealed = withBodies ? await db.query(bodiesOf(idsOf(rows))) : []
    const bodies = new Map(
      sealed.map(({ id, ciphertext, keyId }) => [id, vault.open({ table: 'deliveries', row: id }, ciphertext, keyId)]),
    )
    yield rows.map((row) => ({ ...row, body: bodies.get(row.id)?.toString('utf8') ?? null }))
  }
}

/** Reads deliveries newest first, so that deliveries that come meanwhile are left out. */
async function* pagesOf({ db }: Exporting, { from, to, store, ...filter }: DeliveryExport): AsyncGenerator<Head[]> {
  const asked = { ...filter, from: from === undefined ? undefined : idBound(from), limit: PAGE_DELIVERIES }
  const source = store === undefined ? undefined : storeSourceId(store)
  for (let before = to === undefined ? undefined : idBound(to); ; ) {
    const rows: Head[] = await db.query(listDeliveries({ ...asked, before }))
    const wanted = source === undefined ? rows : rows.filter((row) => row.source === source)
    if (wanted.length > 0) yield wanted
    if (rows.length < PAGE_DELIVERIES) return
    before = rows.at(-1)?.id
    // A client that reads as fast as pages are made must not keep the service from other work.
    await pause()
  }
}

const idsOf = (rows: Head[]): string[] => rows.map(({ id }) => id)
