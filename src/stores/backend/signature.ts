import { createHmac } from 'node:crypto'
import { codeOf, Failure } from '../../errors.ts'
import { Secret } from '../../secret.ts'
import {
  allCallbackSecrets,
  type CallbackSecret,
  endCallbackSecrets,
  insertCallbackSecret,
} from '../../storage/callback-secrets.ts'
import type { Database } from '../../storage/database.ts'
import { insertAudit } from '../../storage/evidence.ts'
import type { Vault } from '../../vault/vault.ts'

/**
 * The headers that let a store verify a callback with any Standard Webhooks library.
 *
 * @param secrets keys of the HMAC, 24 to 64 bytes each: one signature for each, so that a store that has any of them accepts it
 * @param id the same at every attempt: stores recognise repeats by it
 * @param at of this attempt, epoch milliseconds; receivers refuse what is older than a few minutes
 * @param body the exact text that is sent
 * @see the Standard Webhooks specification: HMAC-SHA256 over `id.timestamp.body`, in base64, after `v1,`; several are separated by a space
 */
export function signatureHeaders(
  secrets: readonly Buffer[],
  { id, at, body }: { id: string; at: number; body: string },
) {
  const timestamp = String(Math.floor(at / 1000))
  const signatures = secrets.map((secret) => {
    const mac = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')
    return `v1,${mac}`
  })
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}

/** A secret as people hand it to a Standard Webhooks library. */
export const secretText = (secret: Buffer): string => `whsec_${secret.toString('base64')}`

/**
 * The secrets that callbacks to a store are signed with.
 *
 * None is stored: each is derived from the data key, the store and its generation, so that the database holds numbers and
 * instants alone. While a store takes a new secret into use, callbacks are signed with the old one too.
 */

export interface CallbackSecretsDeps {
  db: Database
  vault: Pick<Vault, 'subKey'>
  /** Epoch milliseconds. */
  now: () => number
  newId: () => string
}

/** A secret that was taken into use. */
export interface NewCallbackSecret {
  /** `whsec_…`: shown this once. */
  secret: Secret
  generation: number
  /** Until then callbacks are signed with the one before, too; epoch milliseconds. */
  previousUntil: number
}

export interface CallbackSecrets {
  /** Every secret of a store that is valid now, the newest first. */
  of(store: string): Buffer[]
  /**
   * Takes a new secret into use.
   *
   * @param overlapMs how long those before stay valid; 0 ends all of them at once
   * @throws Failure `conflict`: `too_many_secrets` while four are valid, `rotated_meanwhile` when a concurrent rotation was faster
   */
  rotate(store: string, overlapMs: number, actor: string): Promise<NewCallbackSecret>
  /** Reads what other processes have changed. */
  refresh(): Promise<void>
}

/** Signatures in one header: a store that lost a new secret before it was installed asks for another one, and again. */
const VALID_MAX = 4

/** Reads the generations once: every rotation in this process must go through what this returns. */
export async function openCallbackSecrets(deps: CallbackSecretsDeps): Promise<CallbackSecrets> {
  const { db, vault, now, newId } = deps
  let rotations = await readRotations(db)

  const derived = new Map<string, Buffer>()
  /** The first generation has a name without a number: so it was before secrets could be rotated. */
  const secretOf = (store: string, generation: number): Buffer => {
    const name = generation === 1 ? `callback:${store}` : `callback:${store}:${generation}`
    const secret = derived.get(name) ?? vault.subKey(name)
    derived.set(name, secret)
    return secret
  }

  function validOf(store: string, at: number): number[] {
    const own = rotations.get(store) ?? []
    const before = own.filter(({ previousUntil }) => previousUntil > at).map(({ generation }) => generation - 1)
    return [own.at(-1)?.generation ?? 1, ...before.reverse()]
  }

  return {
    of: (store) => validOf(store, now()).map((generation) => secretOf(store, generation)),
    rotate: async (store, overlapMs, actor) => {
      const at = now()
      const previousUntil = at + overlapMs
      const valid = validOf(store, at)
      if (overlapMs > 0 && valid.length >= VALID_MAX) {
        const message = `${valid.length} secrets of ${store} are valid: wait until one ends, or end them all with an overlap of 0`
        throw new Failure('conflict', message, { reason: 'too_many_secrets' })
      }
      const generation = (valid[0] ?? 1) + 1
      const detail = `generation ${generation}; the one before is valid until ${new Date(previousUntil).toISOString()}`
      const audit = insertAudit({ id: newId(), at, actor, action: 'store.rotate_secret', subject: store, detail })
      const row = { store, generation, createdAt: at, previousUntil }
      try {
        await db.commit([endCallbackSecrets(store, previousUntil), insertCallbackSecret(row), audit])
      } catch (cause) {
        if (codeOf(cause) !== 'conflict') throw cause
        const message = `the secret of ${store} was changed meanwhile: see its generation, and rotate again if it is not yours`
        throw new Failure('conflict', message, { cause, reason: 'rotated_meanwhile' })
      }
      rotations = await readRotations(db)
      return { secret: new Secret(secretText(secretOf(store, generation))), generation, previousUntil }
    },
    refresh: async () => {
      rotations = await readRotations(db)
    },
  }
}

async function readRotations(db: Database): Promise<Map<string, CallbackSecret[]>> {
  return Map.groupBy(await db.query(allCallbackSecrets()), ({ store }) => store)
}
