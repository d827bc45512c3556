/** Which addresses of a configuration are reached unencrypted over a public network. */
import type { Config } from './config.ts'

/** Returns one sentence for each address at which this configuration sends data over a public network unencrypted. */
export function clearTextWarnings({
  supplier,
  stores,
}: {
  supplier?: Pick<Config['supplier'], 'baseUrl'>
  stores: Pick<Config['stores'][number], 'id' | 'address'>[]
}): string[] {
  const ofStores = stores.filter(({ address }) => isClearText(address))
  return [
    ...(supplier && isClearText(supplier.baseUrl)
      ? [`the API key and licence keys travel unencrypted to and from the supplier at ${supplier.baseUrl}`]
      : []),
    ...ofStores.map(({ id, address }) => `licence keys travel unencrypted to ${address} of ${id}`),
  ]
}

/** What to do about each of these warnings. */
export const ENCRYPT = 'use an https:// address; http:// is for this machine and private networks'

/** Names that no public name server answers. */
const PRIVATE_NAMES = /^[^.]+$|\.(localhost|local|localdomain|internal|intranet|lan|home\.arpa|svc)$/

/** Private are 10/8, 127/8, 169.254/16, 172.16/12, 192.168/16, and 100.64/10, which VPNs give out. */
function isPrivateIpv4(host: string): boolean {
  const [a = 0, b = 0] = host.split('.').map(Number)
  if (a === 10 || a === 127) return true
  if (a === 169) return b === 254
  if (a === 172) return b >= 16 && b <= 31
  if (a === 192) return b === 168
  return a === 100 && b >= 64 && b <= 127
}

/** Private are loopback, unique local and link-local addresses. An IPv4 address in IPv6 form is judged as IPv4. */
function isPrivateIpv6(host: string): boolean {
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(host)
  if (mapped) {
    const [high = 0, low = 0] = mapped.slice(1).map((group) => Number.parseInt(group, 16))
    return isPrivateIpv4([high >> 8, high & 255, low >> 8, low & 255].join('.'))
  }
  return host === '::1' || /^f[cd][0-9a-f]{2}:/.test(host) || /^fe[89ab][0-9a-f]:/.test(host)
}

/**
 * Says whether requests to this address cross a public network unencrypted. They do with `http://` and a host that is neither
 * this machine nor on a private network. A name with a dot counts as public, even if the name resolves to a private address.
 */
export function isClearText(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  if (protocol !== 'http:') return false
  const host = hostname.replaceAll(/^\[|\]$|\.$/g, '')
  if (host.includes(':')) return !isPrivateIpv6(host)
  if (/^[\d.]+$/.test(host)) return !isPrivateIpv4(host)
  return !PRIVATE_NAMES.test(host)
}
