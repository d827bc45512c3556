import { plain, sentence } from '../domain/text-layout.ts'
import { isLoopback } from '../stores/store-settings.ts'
import { type Io, proseWidth } from './command.ts'
import { type ListenFlags, readAddress, secretsFor } from './receivers.ts'

const PORT = 4000
const WIDEST_TYPE = 'listings.changed'.length

/** Does `listen`, until a signal. */
export async function runListen(io: Io, options: ListenFlags): Promise<undefined> {
  const stopped = io.stopSignal()
  const forwardTo = options.forwardTo === undefined ? undefined : readAddress(options.forwardTo)
  const { secrets, store } = await secretsFor(io, options)
  const { aboutCallback, startReceiver } = await import('../stores/backend/receiver.ts')
  const { protocol, hostname, port } = new URL(store?.address ?? 'none:')
  const own = protocol === 'http:' && isLoopback(hostname) ? Number(port || 80) : undefined
  const receiver = await startReceiver({
    secrets,
    port: options.port ?? own ?? PORT,
    now: io.now,
    forwardTo,
    onAnswer: ({ status: answered, why, callback }) => {
      if (options.json) return void io.stdout.write(`${JSON.stringify({ answered, why, callback })}\n`)
      const lead = `${new Date(io.now()).toISOString().slice(11, 19)}  `
      const type = plain(callback?.type ?? 'refused').padEnd(WIDEST_TYPE)
      const about = callback ? `${aboutCallback(callback)}${callback.test ? ', a test' : ''}` : `answered ${answered}`
      io.stdout.write(sentence(plain(about), proseWidth(io), { lead: `${lead}${type}  ` }))
      const fault = callback ? `answered ${answered}: ${why}` : plain(why ?? '')
      if (why) io.stdout.write(sentence(`-> ${fault}`, proseWidth(io), { lead: ' '.repeat(lead.length) }))
    },
  })
  if (!options.json) io.stderr.write(`Listening at ${receiver.url}; Ctrl-C ends it.\n`)
  if (store && receiver.port !== own) {
    const move = `Quayside sends the callbacks of ${store.id} to ${store.address}. Set its callbackUrl to ${receiver.url}, and restart it.`
    io.stderr.write(sentence(move, proseWidth(io)))
  }
  await stopped
  receiver.close()
}
