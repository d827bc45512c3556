/** Where requests come from: the network of a sender, what is kept of it, and how many wrong tokens it has sent. */
import { isIP, isIPv4, isIPv6 } from 'node:net'

/** Returns an IPv4 address as it is, and the /64 network of an IPv6 address: one sender has all addresses of such a network. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(address)) return address
  const [left = [], right = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''))
  const zeros: string[] = Array(8 - left.length - right.length).fill('0')
  return [...left, ...zeros, ...right].slice(0, 4).join(':')
}

/** Names a network and no person: of an IPv4 address three numbers are kept, of an IPv6 address 48 bits. */
export function truncated(address: string): string {
  if (isIP(address) === 0) return 'unknown'
  const network = networkOf(address)
  return isIPv4(network)
    ? `${network.split('.').slice(0, 3).join('.')}.0/24`
    : `${network.split(':').slice(0, 3).join(':')}::/48`
}

const GUESSES_MAX = 20
const GUESSES_MS = 10 * 60_000
/** The most networks that are counted one by one. The networks after them are counted as one. */
const NETWORKS_MAX = 10_000

/** Counts wrong tokens by network. */
export function createGuesses(monotonic: () => number) {
  /** The network that was counted first stands first. */
  const networks = new Map<string, { since: number; count: number }>()
  const forget = (now: number): void => {
    for (const [network, { since }] of networks) {
      if (now - since < GUESSES_MS) return
      networks.delete(network)
    }
  }
  return {
    /** @returns whether the network has sent too many wrong tokens */
    count: (network: string): boolean => {
      const now = monotonic()
      forget(now)
      const name = networks.has(network) || networks.size < NETWORKS_MAX ? network : 'others'
      const mark = networks.get(name) ?? { since: now, count: 0 }
      mark.count += 1
      networks.set(name, mark)
      return mark.count > GUESSES_MAX
    },
  }
}
