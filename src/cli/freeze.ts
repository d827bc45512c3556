import type { Command } from 'commander'
import { Failure } from '../errors.ts'
import { asRow, asRows, cell, instant, type Row } from './cell.ts'
import { confirmed } from './confirm.ts'
import type { Session } from './program.ts'
import { type Call, serviceCommand } from './service-command.ts'
import { details } from './table.ts'

/** The API wants a reason; whoever hurries may leave it out. */
const REASON = 'frozen from the command line'

/** `freeze` and `unfreeze`: the switch that stops all buying. */
export function addFreeze(root: Command, session: Session): void {
  const freeze = root.command('freeze').description('stop all buying; look-ups, intake and hand-over go on')
  freeze.option('--reason <text>', 'what the others will read')
  freeze.addHelpText('after', "\nExample:\n  quayside freeze --reason 'prices look wrong'")
  serviceCommand(freeze, session, async (call) => {
    const reason = call.option('reason') ?? REASON
    const answer = await call.client.post(['freeze'], { reason })
    call.print(answer, () => frozenText({ reason, ...asRow(asRow(answer).freeze) }, call.io.now(), call.width))
    return undefined
  })

  const unfreeze = root.command('unfreeze').description('buy again; what was held by the freeze goes on by itself')
  unfreeze.argument('[causes...]', 'ids of the causes to lift; on a terminal they are shown and asked about')
  serviceCommand(unfreeze, session, async (call) => {
    const causes = call.args.length > 0 ? call.args : await causesShown(call)
    if (causes.length === 0) {
      call.print({ freeze: null }, () => 'Buying is not frozen.\n')
      return undefined
    }
    const answer = await call.client.post(['unfreeze'], { causes })
    const left = asRow(answer).freeze
    call.print(answer, () => (left ? frozenText(asRow(left), call.io.now(), call.width) : 'Buying again.\n'))
    return undefined
  })
}

/** Ids of the causes that are shown here and now. @throws Failure `invalid` where nobody can be shown anything */
async function causesShown(call: Call): Promise<string[]> {
  const { freeze } = asRow(await call.client.get(['status']))
  if (!freeze) return []
  const ids = causesOf(asRow(freeze)).map(({ id }) => cell(id))
  if (!call.io.isTerminal || call.json) {
    const named = causesOf(asRow(freeze)).map(({ id, reason }) => `${cell(id)}  ${cell(reason)}`)
    const line = `npx quayside unfreeze ${ids.join(' ')}`
    throw new Failure('invalid', `name the causes that are to be lifted:\n${named.join('\n')}\nAll of them:\n${line}`)
  }
  if (
    !(await confirmed(
      call.io,
      `${frozenText(asRow(freeze), call.io.now(), call.width)}\nAll of this is settled, and buying is to go on?`,
    ))
  ) {
    throw new Failure('conflict', 'not confirmed: buying stays frozen')
  }
  return ids
}

export const causesOf = ({ causes, ...freeze }: Row): Row[] => (Array.isArray(causes) ? asRows(causes) : [freeze])

/** Why buying is frozen, since when, and what to do about it. @param seen the purchase that the reader has before him */
export function frozenText(freeze: Row, now: number, width: number, seen?: unknown): string {
  const [first = freeze, ...others] = causesOf(freeze)
  const whyOf = ({ actor, at, reason }: Row): string =>
    at ? `${cell(reason)} (by ${cell(actor)}, ${instant(at, now)})` : cell(reason)
  return details(
    [
      ['Frozen', 'nothing is bought until it is lifted'],
      ['Why', whyOf(first)],
      ...others.map((cause): [string, string] => ['And', whyOf(cause)]),
      ...nextOf(freeze, seen).map((next, place): [string, string] => [place === 0 ? 'Next' : '', next]),
    ],
    width,
  )
}

/**
 * What leads out of a freeze, in this order. One without a purchase was caused by many reviews, or by a balance that fell
 * with an order of ours behind it that has none.
 */
export function nextOf(freeze: Row, seen?: unknown): string[] {
  if (freeze.actor === 'restore') return afterRestore(freeze)
  const causes = causesOf(freeze).filter(({ actor }) => actor === 'quayside')
  const bought = causes.filter(({ purchaseId }) => purchaseId && purchaseId !== seen)
  const looks = [
    ...bought.map(({ purchaseId }) => `npx quayside reviews show ${cell(purchaseId)}`),
    ...(causes.some(({ purchaseId }) => !purchaseId)
      ? ['npx quayside reviews', 'npx quayside discrepancies list']
      : []),
  ]
  return [...new Set(looks), 'when that is settled: npx quayside unfreeze']
}

/** A restore's hold says in its reason how far the mapping is: once that is through, it waits for people. */
function afterRestore({ reason }: Row): string[] {
  const why = cell(reason)
  if (why.startsWith('the database is new: ')) {
    return ["it ends by itself once the supplier's order list was read", 'if that fails: npx quayside doctor']
  }
  if (!why.includes('; mapped back: ')) {
    return ["it ends by itself once the supplier's orders are mapped back"]
  }
  // The list does not show all orders: only a person can find out about the others.
  if (why.includes('(paging.listMax)')) {
    const account = "the supplier's own account: does it have older orders of these stores?"
    return ['npx quayside discrepancies list', account, 'when that is settled: npx quayside unfreeze']
  }
  return [
    'npx quayside discrepancies list',
    'it ends by itself once each of those orders has its purchase again',
    'when that is settled otherwise: npx quayside unfreeze',
  ]
}
