import type { Command } from 'commander'
import { age, asRow, asRows, cell, instant } from './cell.ts'
import type { Session } from './program.ts'
import { serviceCommand } from './service-command.ts'
import { table } from './table.ts'

const PATH = ['captures']

/** `dialect capture`: refused deliveries, kept for a while by the running service, for `dialect detect`. */
export function addCapture(dialect: Command, session: Session): void {
  const capture = dialect.command('capture').description('refused deliveries to detect from: start, list, show')

  const start = capture.command('start').description('keep the next refused deliveries: at most 10, for 15 minutes')
  start.addHelpText('after', EXAMPLES)
  serviceCommand(start, session, async (call) => {
    const state = asRow(await call.client.post(PATH))
    const now = call.io.now()
    call.print(
      state,
      () =>
        `Taking up to ${cell(state.left)} refused deliveries until ${instant(state.closesAt, now)}.\n` +
        `They are deleted at ${instant(state.keptUntil, now)}.\nSee them: quayside dialect capture list\n`,
    )
    return undefined
  })

  const list = capture.command('list').description('what is kept')
  serviceCommand(list, session, async (call) => {
    const page = asRow(await call.client.get(PATH))
    const now = call.io.now()
    const open = asRow(page.open)
    const state = page.open
      ? `Taking up to ${cell(open.left)} more until ${instant(open.closesAt, now)}.\n`
      : 'No capture goes on. `quayside dialect capture start` begins one.\n'
    call.print(page, () => {
      const rows = asRows(page.items)
      const columns = [
        { title: 'ID', of: (row: Record<string, unknown>) => cell(row.id), keep: true as const },
        { title: 'PATH', of: (row: Record<string, unknown>) => cell(row.path) },
        { title: 'REFUSED FOR', of: (row: Record<string, unknown>) => cell(row.reason) },
        { title: 'AGE', of: (row: Record<string, unknown>) => age(row.receivedAt, now), right: true as const },
      ]
      return `${rows.length === 0 ? 'Nothing is kept.\n' : table(rows, columns, call.width)}${state}`
    })
    return undefined
  })

  const show = capture.command('show').description('one as it came, for a file; is written to the audit')
  show.argument('<id>', 'its id')
  serviceCommand(show, session, async (call) => {
    const delivery = await call.client.get([...PATH, call.args[0] ?? ''])
    // A document either way: it is made to be saved and read by `dialect detect`.
    call.print(delivery, () => `${JSON.stringify(delivery, undefined, 2)}\n`)
    return undefined
  })
}

const EXAMPLES = `
For a webhook whose deliveries are all refused, when nobody knows how they are
signed. Takes the role admin; the audit records who started it and who looked.

Examples:
  quayside dialect capture start
  quayside dialect capture show 01kb3q8z4x9r2m5t7v0w1y3a6c > delivery.json`
