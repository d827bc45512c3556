/** What tests of console pages need: visits by role, and rows that the flows would take days to make. */
import { randomBytes } from 'node:crypto'
import type { PersonRole } from '../../src/access/sessions.ts'
import { insertDelivery } from '../../src/storage/deliveries.ts'
import { offersByProduct, putOffer } from '../../src/storage/offers.ts'
import { audit, type deliveries } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import type { ApiWorld } from './api-world.ts'
import { type Form, signedIn, visit } from './console-client.ts'
import { offerRow } from './publish-world.ts'

/** Pages and actions, each for a person of a role, who stays signed in. */
export function peopleOf(world: ApiWorld) {
  const cookies = new Map<PersonRole, string>()
  const cookieOf = async (role: PersonRole) => {
    const cookie = cookies.get(role) ?? (await signedIn(world, role))
    cookies.set(role, cookie)
    return cookie
  }
  const address = world.pages.address() ?? ''
  return {
    page: async (role: PersonRole, path: string) => visit(address, path, { cookie: await cookieOf(role) }),
    /** Sends a form. */
    act: async (role: PersonRole, path: string, form: Form) =>
      visit(address, path, { cookie: await cookieOf(role), form }),
  }
}

export const auditOf = ({ db }: Pick<ApiWorld, 'db'>) => db.query(build.select().from(audit))

type DeliveryRow = typeof deliveries.$inferInsert

/** Stores deliveries as if they had come and been dealt with. @param given `body` null: it was deleted. @returns their ids */
export async function insertDeliveries(
  { db, vault, access: { newId, now } }: Pick<ApiWorld, 'db' | 'vault' | 'access'>,
  given: (Partial<Omit<DeliveryRow, 'ciphertext'>> & { body?: string | null })[],
): Promise<string[]> {
  const rows = given.map(({ body = '{"event":"unheard.of"}', ...fields }) => {
    const id = newId()
    const sealed = vault.seal({ table: 'deliveries', row: id }, body ?? '')
    const row = {
      id,
      source: 'supplier',
      deliveryId: `dlv_${id.slice(-8)}`,
      bodyHmac: randomBytes(32),
      mac: randomBytes(32),
      signedAt: now(),
      receivedAt: now(),
      state: 'stored' as const,
      notBefore: now(),
      ...sealed,
      ...fields,
    }
    return body === null ? { ...row, ciphertext: Buffer.alloc(0) } : row
  })
  await db.commit(rows.map((row) => insertDelivery(row)))
  return rows.map(({ id }) => id)
}

/** Stores an offer, as a newer reading of it than the one before. */
export async function offer({ db }: Pick<ApiWorld, 'db'>, ...given: Parameters<typeof offerRow>): Promise<void> {
  const row = offerRow(...given)
  const [known] = await db.query(offersByProduct([row.productId]))
  await db.commit([putOffer({ ...row, asOf: (known?.asOf ?? row.asOf) + 1 })])
}
