import type { Command } from 'commander'
import { asRow, cell } from './cell.ts'
import type { Session } from './program.ts'
import { serviceCommand } from './service-command.ts'

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
    // Frozen twice, the reason of the first stands.
    const stands = asRow(asRow(answer).freeze).reason ?? reason
    call.print(answer, () => `Frozen: ${cell(stands)}\nNothing is bought until \`quayside unfreeze\`.\n`)
    return undefined
  })

  const unfreeze = root.command('unfreeze').description('buy again; what was held by the freeze goes on by itself')
  serviceCommand(unfreeze, session, async (call) => {
    const answer = await call.client.post(['unfreeze'])
    call.print(answer, () => 'Buying again.\n')
    return undefined
  })
}
