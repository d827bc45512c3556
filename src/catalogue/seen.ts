/**
 * Which offers a run has seen: one bit for each place of their table, 125 kB for a million of them.
 *
 * It is kept in memory alone. A run that was cut short and resumed has lost it, and needs it no more: the list may have
 * moved meanwhile, so such a run counts nothing as missing.
 */
export interface Seen {
  add(place: number): void
  has(place: number): boolean
}

export function createSeen(): Seen {
  let bits = new Uint8Array(1_024)
  return {
    add(place) {
      const at = place >>> 3
      if (at >= bits.length) {
        const larger = new Uint8Array(Math.max(bits.length * 2, at + 1))
        larger.set(bits)
        bits = larger
      }
      bits[at] = (bits[at] ?? 0) | (1 << (place & 7))
    },
    has: (place) => ((bits[place >>> 3] ?? 0) & (1 << (place & 7))) !== 0,
  }
}
