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
  const isHere = protocol === 'http:' && isLoopback(hostname)
  const receiver = await startReceiver({
    secrets,
    port: options.port ?? (isHere ? Number(port || 80) : PORT),
    now: io.now,
    forwardTo,
    onAnswer: ({ status: answered, why, callback }) => {
      if (options.json) return void io.stdout.write(`${JSON.stringify({ answered, why, callback })}\n`)
      const lead = `${new Date(io.now()).toISOString().slice(11, 19)}  `
      const type = plain(callback?.type ?? 'refused').padEnd(WIDEST_TYPE)
      const texts = [callback && aboutCallback(callback), callback?.test && 'a test', why && `${answered}, ${why}`]
      io.stdout.write(sentence(plain(texts.filter(Boolean).join('; ')), proseWidth(io), { lead: `${lead}${type}  ` }))
    },
  })
  if (!options.json) io.stderr.write(`Listening at ${receiver.url}; Ctrl-C ends it.\n`)
  if (store && !(isHere && new URL(receiver.url).port === (port || '80'))) {
    const move = `Quayside sends the callbacks of ${store.id} to ${store.address}. Set its callbackUrl to ${receiver.url}, and restart it.`
    io.stderr.write(sentence(move, proseWidth(io)))
  }
  await stopped
  receiver.close()
}
