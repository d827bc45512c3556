/** The transition table, in the order in which its rows are tried. The names of the rows are kept as evidence. */
import { acceptedRows } from './purchase-accepted.ts'
import type { Row } from './purchase-row.ts'
import { sendingRows } from './purchase-sending.ts'

export const rows: readonly Row[] = [...sendingRows, ...acceptedRows]
