import { z } from 'zod'
import { PROBLEMS_MAX } from '../catalogue/import-links.ts'
import { fileLimits } from '../catalogue/listing-file.ts'
import { choice } from './api-input.ts'
import { type ConfiguredStore, storeAt } from './api-listings.ts'
import { csvFile } from './csv-file.ts'
import type { Flows } from './flows.ts'
import { type Operation, ok, operation } from './operation.ts'

const lines = z.int().min(0)

export const ImportReport = z.object({
  lines: lines.meta({ description: 'Below the header: each is counted once in what follows' }),
  ...{ linked: lines, unlinked: lines, ignored: lines },
  unchanged: lines.meta({ description: 'The listing was as the line says' }),
  refused: lines.meta({ description: 'Nothing was done for the line' }),
  problems: z
    .array(z.object({ line: z.int().min(1), column: z.string().nullable(), message: z.string() }))
    .meta({ description: `By line, at most ${PROBLEMS_MAX}; line 1 is the header` }),
  truncated: z.boolean().meta({ description: 'There are more problems than are listed' }),
})

/** The listings of a store as a CSV file, out and in. */
export function listingFileOperations({
  flows,
  stores,
}: {
  flows: Flows
  stores: readonly ConfiguredStore[]
}): Operation[] {
  return [
    operation({
      ...{ name: 'exportListings', method: 'get', path: '/stores/:store/listings/export' },
      ...{ allowed: { store: 'orders', people: 'viewer' }, answer: csvFile },
      summary: 'The listings of a store as a CSV file, which an import takes back.',
      ...{ success: { 200: 'All of them, by id' }, failures: { 404: 'no such store' } },
      async handle({ caller, path }) {
        const store = storeAt(stores, caller, path)
        return ok({ name: `listings-${store}.csv`, pieces: flows.exportLinks(store) })
      },
    }),
    operation({
      ...{ name: 'importListings', method: 'post', path: '/stores/:store/listings/import' },
      ...{ allowed: { people: 'operator' }, answer: ImportReport, query: { dry_run: choice(['true', 'false']) } },
      summary:
        'Link, unlink and ignore listings as a CSV file says, line by line; with dry_run=true only tell what would be.',
      file: { bytesMax: fileLimits.bytesMax },
      success: { 200: 'What became of each line, good or bad' },
      failures: { 404: 'no such store' },
      async handle({ caller, path, query, file }) {
        const store = storeAt(stores, caller, path)
        const dryRun = query.dry_run === 'true'
        return ok(await flows.importLinks({ store, actor: caller.actor, dryRun }, file))
      },
    }),
  ]
}
