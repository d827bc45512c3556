/** The store of a torture run, in a process of its own: it records each callback in a file before it answers. */
import { startShop } from '../../support/recording-store.ts'

export interface StoreSettings {
  secret: string
  port: number
  file: string
}

process.on('disconnect', () => process.exit(0))
const shop = await startShop(JSON.parse(process.argv[2] ?? '{}') as StoreSettings)
/** What the runner asks for: the next callbacks are answered so, unrecorded, or recorded on request. */
process.on('message', ({ status, recorded }: { status: number; recorded: boolean }) => {
  shop.answerNext(status, 1, recorded ? 'recorded' : undefined)
})
process.send?.('ready')
