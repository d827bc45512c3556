/**
 * Loaded into a service by `--import`, before anything else: writes each address that the process connects to, each name that it
 * looks up, each datagram and each process that it starts to the file of its own address (`?file=`). Its threads do the same.
 */
import childProcess from 'node:child_process'
import dgram from 'node:dgram'
import dns from 'node:dns'
import { appendFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'

const file = new URL(import.meta.url).searchParams.get('file') ?? ''
const note = (what: string): void => appendFileSync(file, `${what}\n`)

type Call = (...given: unknown[]) => unknown
/** Notes each call of a function before it is made. */
function watch(owner: object, name: string, say: (given: unknown[]) => string): void {
  const functions = owner as Record<string, Call>
  const own = functions[name]
  functions[name] = function (this: unknown, ...given) {
    note(say(given))
    return own?.apply(this, given)
  }
}

watch(net.Socket.prototype, 'connect', (given) => {
  const [first, second] = (Array.isArray(given[0]) ? given[0] : given) as unknown[]
  const { host, port, path } = (typeof first === 'object' ? first : { port: first, host: second }) as {
    host?: unknown
    port?: unknown
    path?: unknown
  }
  return `connect ${path ?? `${host ?? 'localhost'}:${port}`}`
})
for (const owner of [dns, dns.promises, dns.Resolver.prototype, dns.promises.Resolver.prototype]) {
  for (const name of Object.getOwnPropertyNames(owner)) {
    if (/^(lookup|resolve|reverse)/.test(name)) watch(owner, name, ([asked]) => `name ${asked}`)
  }
}
for (const name of ['connect', 'send']) watch(dgram.Socket.prototype, name, () => 'datagram')
for (const name of ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork']) {
  watch(childProcess, name, ([program]) => `process ${program}`)
}
syncBuiltinESMExports()
note('watched')
