import type { Command } from 'commander'
import { asRow, asRows, type Row } from './cell.ts'
import type { Query } from './client.ts'
import type { Session } from './program.ts'
import { type Call, serviceCommand } from './service-command.ts'
import { type Column, sentence, table } from './table.ts'

export interface List {
  /** Under `/api/v1`. */
  path: string[]
  /** The list is short and comes whole. */
  whole?: true
  /** Names of options that become query parameters as they are. */
  filters?: string[]
  /** Query parameters that the command always sends. */
  fixed?: Query
  columns: (call: Call) => Column[]
  /** What to do next, or what the table has no room for, below it. */
  after?: string | ((rows: Row[], call: Call) => string)
  /** What an empty list means, as a sentence. */
  empty: string
}

/** Gives a command the options of a list, newest first, and an action that prints one page of it. */
export function listCommand(command: Command, session: Session, list: List): void {
  if (!list.whole) {
    command.option('--limit <count>', 'how many, 1 to 200; 50 unless told')
    command.option('--before <id>', 'go on after the last id of the page before')
  }
  serviceCommand(command, session, async (call) => {
    const names = ['limit', 'before', ...(list.filters ?? [])]
    const query: Query = { ...list.fixed, ...Object.fromEntries(names.map((name) => [name, call.option(name)])) }
    const page = asRow(await call.client.get(list.path, query))
    call.print(page, () => {
      const rows = asRows(page.items)
      if (rows.length === 0) return sentence(list.empty, call.width)
      const more = typeof page.next === 'string' ? `There is more: --before ${page.next}\n` : ''
      const after = typeof list.after === 'function' ? list.after(rows, call) : (list.after ?? '')
      return table(rows, list.columns(call), call.width) + more + after
    })
    return undefined
  })
}
