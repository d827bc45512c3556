/** What a person should know of a configuration that is accepted. */
import { BlockList, isIP, isIPv6 } from 'node:net'
import { kindOf } from '../stores/kinds.ts'
import type { Config } from './config.ts'

type StoresWith<K extends keyof Config['stores'][number]> = { stores: readonly Pick<Config['stores'][number], K>[] }
type MaybeSupplier = { supplier?: Pick<Config['supplier'], 'baseUrl'> }

/** Returns one sentence for each address at which this configuration sends data over a public network unencrypted. */
export function clearTextWarnings({ supplier, stores }: MaybeSupplier & StoresWith<'id' | 'address'>): string[] {
  const ofStores = stores.filter(({ address }) => isClearText(address))
  return [
    ...(supplier && isClearText(supplier.baseUrl)
      ? [`the API key and licence keys travel unencrypted to and from the supplier at ${supplier.baseUrl}`]
      : []),
    ...ofStores.map(({ id, address }) => `licence keys travel unencrypted to ${address} of ${id}`),
  ]
}

/** What to do about a warning of `clearTextWarnings`. */
export const ENCRYPT = 'use an https:// address; http:// is for this machine and private networks'

/** Host names that no public name server resolves. */
const PRIVATE_NAMES = /^[^.]+$|\.(localhost|local|localdomain|internal|intranet|lan|home\.arpa|svc)$/

/** The private networks, with 100.64/10, whose addresses VPNs use. An IPv4 address in IPv6 form is judged as IPv4. */
const PRIVATE = new BlockList()
for (const [network, bits] of Object.entries({
  '10.0.0.0': 8,
  '127.0.0.0': 8,
  '169.254.0.0': 16,
  '172.16.0.0': 12,
  '192.168.0.0': 16,
  '100.64.0.0': 10,
  '::1': 128,
  'fc00::': 7,
  'fe80::': 10,
})) {
  PRIVATE.addSubnet(network, bits, isIPv6(network) ? 'ipv6' : 'ipv4')
}

/**
 * Says whether requests to this address cross a public network unencrypted. They do with `http://` and a host that is neither
 * this machine nor on a private network. A name with a dot counts as public, even if the name resolves to a private address.
 */
export function isClearText(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  if (protocol !== 'http:') return false
  const host = hostname.replaceAll(/^\[|\]$|\.$/g, '')
  return isIP(host) === 0 ? !PRIVATE_NAMES.test(host) : !PRIVATE.check(host, isIPv6(host) ? 'ipv6' : 'ipv4')
}

/** Returns one sentence for each shop whose configuration is older than the page of keys and does not say how keys reach customers. */
export const keyWayWarnings = ({ stores }: StoresWith<'id' | 'kind' | 'deliver'>) =>
  stores
    .filter((store) => store.deliver === undefined && kindOf(store).shop !== null)
    .map(({ id }) => `${id} does not say how keys reach its customers: they go in plain text, without a page of keys`)

/** What to do about a warning of `keyWayWarnings`. */
export const SAY_HOW =
  'set "deliver" of the store to "link" or "both", which need publicUrl, or to "keys" to leave it so'
