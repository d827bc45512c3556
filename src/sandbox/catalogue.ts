import { readFileSync } from 'node:fs'
import { z } from 'zod'

/** One product of the catalogue, before any sale or change. Amounts are in minor units. */
const productShape = z.strictObject({
  id: z.uuid(),
  sku: z.string().min(1),
  name: z.string().min(1),
  category: z.string().min(1),
  /** The API/VIP price: what a reseller pays. */
  priceMinor: z.number().int().positive(),
  basePriceMinor: z.number().int().positive(),
  cashbackMinor: z.number().int().min(0),
  localStock: z.number().int().min(0),
  providerStock: z.number().int().min(0),
  available: z.boolean(),
  /** Who fulfils: the `local` stock or the `provider`. */
  origin: z.enum(['local', 'provider']),
})
export type Product = z.infer<typeof productShape>

/** Products by position; `find` returns the position of the product with an id. */
export type Catalogue = ReturnType<typeof shippedCatalogue>

/** Reads the shipped catalogue: some sixty products, a few of them out of stock. */
export function shippedCatalogue() {
  const file = new URL('../../data/sandbox/catalogue.json', import.meta.url)
  const products = z.array(productShape).parse(JSON.parse(readFileSync(file, 'utf8')))
  const positions = new Map(products.map((product, index) => [product.id, index]))
  const at = (index: number) => {
    const product = products[index]
    if (!product) throw new RangeError(`the catalogue has no product ${index}`)
    return product
  }
  return { size: products.length, at, find: (id: string) => positions.get(id) }
}

/**
 * Makes a catalogue of any size. Each product is a hash of seed and position, made on request and not kept.
 *
 * The last 48 bits of an id hold the position, so an id leads back to its product without a table.
 */
export function generatedCatalogue(size: number, seed: number): Catalogue {
  const mask = mix(seed, 0, 9)
  const at = (index: number) => generatedProduct(index, seed, mask)
  const find = (id: string) => {
    const tail = id.slice(24)
    if (!/^[0-9a-f]{12}$/.test(tail)) return undefined
    const index = Number.parseInt(tail, 16) - mask
    return index >= 0 && index < size && at(index).id === id ? index : undefined
  }
  return { size, at, find }
}

function generatedProduct(index: number, seed: number, mask: number): Product {
  const draw = (lane: number, below: number) => mix(seed, index, lane) % below
  const kind = kinds[draw(3, kinds.length)] ?? kinds[0]
  const basePriceMinor = 199 + draw(4, 19_800)
  const local = draw(5, 4) === 0
  // One product in eight is out of stock: about what a reseller sees on an ordinary day.
  const stock = draw(6, 8) === 0 ? 0 : 1 + draw(7, 500)
  return {
    id: generatedId(index, seed, mask),
    sku: `${kind.code}-${String(index).padStart(7, '0')}`,
    name: `${makers[draw(8, makers.length)]} ${kind.noun} ${1 + draw(10, 12)} ${editions[draw(11, editions.length)]}`,
    category: kind.category,
    priceMinor: Math.max(1, Math.floor((basePriceMinor * (70 + draw(12, 26))) / 100)),
    basePriceMinor,
    cashbackMinor: Math.floor((basePriceMinor * draw(13, 4)) / 100),
    localStock: local ? stock : 0,
    providerStock: local ? 0 : stock,
    available: true,
    origin: local ? 'local' : 'provider',
  }
}

/** Returns a UUID of version 4 whose last 48 bits are the position plus the mask; the other bits are random. */
function generatedId(index: number, seed: number, mask: number): string {
  const [first, second, third] = [mix(seed, index, 0), mix(seed, index, 1), mix(seed, index, 2)]
  const version = 0x4000 | (second & 0x0fff)
  const variant = 0x8000 | ((third >>> 16) & 0x3fff)
  const position = hex(mask + index, 12)
  return `${hex(first, 8)}-${hex(second >>> 16, 4)}-${hex(version, 4)}-${hex(variant, 4)}-${position}`
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')

const kinds = [
  { code: 'OS', category: 'operating-systems', noun: 'Desktop' },
  { code: 'OFF', category: 'office', noun: 'Office Suite' },
  { code: 'AV', category: 'antivirus', noun: 'Antivirus' },
  { code: 'GAM', category: 'games', noun: 'Chronicles' },
  { code: 'GFT', category: 'gift-cards', noun: 'Gift Card' },
  { code: 'VPN', category: 'vpn', noun: 'VPN' },
  { code: 'CRE', category: 'creative', noun: 'Studio' },
] as const
const makers = ['Halden', 'Norrsken', 'Brightwater', 'Kestrel', 'Ostara', 'Lumen', 'Fjordline', 'Petrel'] as const
const editions = ['Home', 'Pro', 'Family', 'Business', '1 year', '2 years', 'Europe', 'Global'] as const

/** Returns a 32-bit hash of three numbers, by the finaliser of lowbias32: each input bit flips half of the output bits. */
function mix(seed: number, index: number, lane: number): number {
  let hash = Math.imul(index ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(seed ^ Math.imul(lane + 1, 0x27d4eb2f), 0xc2b2ae35)
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d)
  hash = Math.imul(hash ^ (hash >>> 15), 0x846ca68b)
  return (hash ^ (hash >>> 16)) >>> 0
}
