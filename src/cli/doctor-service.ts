import { once } from 'node:events'
import { connect } from 'node:net'
import type { Config } from '../config/config.ts'
import { keyTypesOf, pathsOf } from '../dialect/dialect.ts'
import { needsPage } from '../domain/licence-key.ts'
import { Failure, messageOf } from '../errors.ts'
import { type ConfiguredStore, kindOf } from '../stores/kinds.ts'
import type { Supplier } from '../supplier/client.ts'
import { type Client, type ConnectionOptions, connectionOf, createClient, type Item, networkCause } from './client.ts'
import type { Io } from './command.ts'
import type { Report, Visit } from './doctor.ts'
import { messageLines, NOT_RUNNING } from './exit-codes.ts'
import { type Duty, dutiesOf, type Status } from './status.ts'
import { cell, commandLine, instant } from './words.ts'

type Running = { client: Client; status: Status }
export type Service = Running | { fault: Failure }

/** Asks the service for its status. A service that does not answer is returned as a fault, so that the other checks go on. */
export async function meetService(options: ConnectionOptions, env: Io['env']): Promise<Service> {
  try {
    const client = createClient(connectionOf(options, env))
    return { client, status: await client.call('GET /status') }
  } catch (error) {
    return { fault: error instanceof Failure ? error : new Failure('internal', messageOf(error), { cause: error }) }
  }
}

export async function checkWebhooks({ io, config, report }: Visit, supplier: Supplier, service: Service) {
  try {
    const isByHand = pathsOf(config.dialectFacts).webhooks === null
    const theirs = isByHand ? [] : (await supplier.webhooks()).items
    if ('fault' in service) {
      const there = isByHand ? "made in the supplier's dashboard" : `${theirs.length} at the supplier`
      report('warn', 'webhooks', `${there}; only the running service knows which are ours`)
      return
    }
    const held = (await service.client.call('GET /webhooks')).items
    const ours = held.filter(({ state }) => state !== 'retired')
    const delivers = ({ lastReceivedAt }: Webhook) =>
      lastReceivedAt !== null && io.now() - Date.parse(lastReceivedAt) < DELIVERED_MS
    const isThere = (own: Webhook) => isByHand || delivers(own) || theirs.some(({ id }) => id === own.id)
    const lost = ours.filter((own) => !isThere(own))
    const base = config.publicUrl === null ? undefined : new URL(config.publicUrl).origin
    const isOurs = (id: string, url: string) =>
      held.some((own) => own.id === id) || ours.some((own) => own.url === url && delivers(own))
    const strange = theirs.filter(({ id, url }) => originOf(url) === base && !isOurs(id, url))
    const make = ours.some(isThere) ? undefined : CREATE
    for (const { id, url } of lost) report('fail', 'webhooks', `${id} (${url}) is gone at the supplier`, make)
    for (const { id, url } of strange) {
      const fix = `${make ? 'create one, and ' : ''}remove this one in the pages of the supplier`
      report('warn', 'webhooks', `${id} (${url}) comes here, and its secret is not held: it is refused`, fix)
    }
    if (lost.length + strange.length > 0) return
    if (ours.length > 0) report('ok', 'webhooks', `${ours.length} registered, with their secrets`)
    else if (config.publicUrl === null) report('ok', 'webhooks', 'none, as there is no public address: polling alone')
    else report('warn', 'webhooks', 'none, although there is a public address', CREATE)
  } catch (error) {
    report('fail', 'webhooks', `they cannot be compared: ${messageOf(error)}`, undefined, error)
  }
}

type Webhook = Item<'GET /webhooks'>

/** A webhook that brought a delivery within this time exists at the supplier, even if the supplier does not list it. */
const DELIVERED_MS = 7 * 24 * 3_600_000
const CREATE = `\`${commandLine('webhooks create')}\` makes one, or says how one is made by hand`
const originOf = (url: string): string | undefined => (URL.canParse(url) ? new URL(url).origin : undefined)

/** How long `doctor` waits for an answer. A healthy proxy, service or store answers much sooner. */
const DEADLINE_MS = 5_000

export async function checkPublicUrl({ publicUrl, dialectFacts }: Config, report: Report): Promise<void> {
  if (publicUrl === null && keyTypesOf(dialectFacts).some((type) => needsPage({ type }))) {
    const what = 'none, and keys of this supplier may be pictures or files: an order with one waits for a person'
    return report('warn', 'public address', what, 'set publicUrl: customers get such a key on their page of keys alone')
  }
  if (publicUrl === null) return report('ok', 'public address', 'none: the service works by polling alone')
  const url = `${publicUrl}/livez`
  const fix = 'look at the proxy and the name; this was tried from here, the supplier comes from outside'
  try {
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(DEADLINE_MS) })
    await response.body?.cancel()
    if (response.status === 200) report('ok', 'public address', `${url} answers`)
    else report('fail', 'public address', `${url} answers ${response.status} instead of 200`, fix)
  } catch (error) {
    report('fail', 'public address', `${url} cannot be reached (${networkCause(error, DEADLINE_MS)})`, fix)
  }
}

export function checkService(service: Service, config: Config | undefined, now: number, report: Report): void {
  try {
    const duties = 'fault' in service ? reportFault(service.fault, report) : reportRunning(service, now, report)
    const channels = Object.keys(config?.alerts.channels ?? {})
    for (const { check, level, what, how, fix } of duties) {
      if (check !== 'alerts' || channels.length > 0) report(level, check, what, how ? commandLine(how) : fix)
    }
    const isFine = (check: string) => !duties.some((duty) => duty.check === check)
    if ('status' in service && isFine('listings')) report('ok', 'listings', 'none failed, none held')
    if ('status' in service && isFine('dead letters')) report('ok', 'dead letters', 'none')
    if (config && channels.length === 0) {
      const fix = 'see "alerts" in docs/configuration.md'
      report('warn', 'alerts', 'no channel is configured: no person is notified', fix)
    } else if (config && isFine('alerts')) {
      report('ok', 'alerts', `sent by ${channels.join(', ')}; \`${commandLine('alerts test')}\` tries each`)
    }
  } catch (error) {
    const what = `what it answers cannot be read: ${messageOf(error)}`
    report('fail', 'service', what, 'is it of another version? Restart it', error)
  }
}

function reportFault(fault: Failure, report: Report): Duty[] {
  const [first = '', ...more] = fault.reason === 'no_api' ? fault.message.split('\n') : messageLines(fault)
  const level = fault.reason === 'no_api' ? 'ok' : fault.reason === NOT_RUNNING ? 'warn' : 'fail'
  report(level, 'service', first, more.join(' ') || undefined, fault)
  return []
}

/** Reports how the running service is. @returns what waits for a person */
function reportRunning({ client, status }: Running, now: number, report: Report): Duty[] {
  const { freeze, workerAbsentSince, freshness } = status
  if (freshness.catalogueFailure) {
    const { at, error, run } = freshness.catalogueFailure
    const what = `runs at ${client.origin} and could not read the catalogue, ${instant(at, now)}: ${cell(error)}`
    report('warn', 'service', what, `see \`${commandLine(`sync show ${run}`)}\``)
  } else report('ok', 'service', `runs at ${client.origin}`)
  if (workerAbsentSince) {
    const fix = `\`${commandLine('serve --role worker')}\` starts one`
    const since = instant(workerAbsentSince, now)
    report('fail', 'worker', `none since ${since}: nothing is bought, read or handed over`, fix)
  }
  if (freeze) {
    const what = `nothing is bought since ${instant(freeze.at, now)}: ${freeze.reason}`
    report('fail', 'freeze', what, `\`${commandLine('unfreeze')}\` when it is fixed`)
  } else report('ok', 'freeze', 'none')
  return dutiesOf(status, now)
}

/**
 * Connects to each store and sends nothing, so that backends need no code for this check. `stores test` tries more of a shop. A
 * backend that is not there is a fault once the service runs, and so sends callbacks.
 */
export async function checkStores(stores: ConfiguredStore[], service: Service, report: Report): Promise<void> {
  const sends = 'status' in service || service.fault.reason !== NOT_RUNNING
  for (const store of stores) {
    const { id, address } = store
    const { hostname, port, protocol } = new URL(address)
    const host = hostname.replaceAll(/^\[|\]$/g, '')
    const fault = await connectFault(host, Number(port) || (protocol === 'https:' ? 443 : 80))
    const what = `${address} of ${id}`
    const isShop = kindOf(store).shop !== null
    const check = isShop ? 'shop' : 'callbacks'
    const fix = isShop
      ? 'is this the address of the shop, and is it reachable from here?'
      : `start your backend, or \`${commandLine('listen')}\`, which receives callbacks on this machine meanwhile`
    const more = isShop ? `; \`${commandLine(`stores test ${id}`)}\` tries its key` : ''
    if (fault === undefined) report('ok', check, `${what} takes connections (nothing was sent)${more}`)
    else report(isShop || sends ? 'fail' : 'warn', check, `${what} takes no connection (${fault})`, fix)
  }
}

/** Tries a connection. @returns the name of the network error; undefined when the connection was made */
async function connectFault(host: string, port: number): Promise<string | undefined> {
  const socket = connect({ host, port })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(DEADLINE_MS) })
    return undefined
  } catch (error) {
    return networkCause(error, DEADLINE_MS)
  } finally {
    // An error after the deadline has no other handler, and would end the process.
    socket.on('error', () => {}).destroy()
  }
}
