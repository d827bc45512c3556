import { createHmac } from 'node:crypto'
import type { Context } from '../../context.ts'
import { codeOf, conflict, Failure } from '../../errors.ts'
import { Secret } from '../../secret.ts'
import type { Database } from '../../storage/database.ts'
import { insertAudit } from '../../storage/evidence.ts'
import {
  allCallbackSecrets,
  type CallbackSecret,
  endCallbackSecrets,
  insertCallbackSecret,
} from '../../storage/stores.ts'

/**
 * Returns the headers that let a store verify a callback with any Standard Webhooks library.
 *
 * @param secrets keys of the HMAC, 24 to 64 bytes each. Each key makes a signature. A store needs only one of the keys
 * @param id the same at every attempt: stores recognise repeats by it
 * @param at the instant of this attempt, epoch milliseconds; receivers refuse a callback that is older than a few minutes
 * @param body the exact text that is sent
 * @see the Standard Webhooks specification: HMAC-SHA256 over `id.timestamp.body`, in base64 after `v1,`, separated by spaces
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

/** Returns a secret as the text that people give to a Standard Webhooks library. */
export const secretText = (secret: Buffer): string => `whsec_${secret.toString('base64')}`

/**
 * The secrets that callbacks to a store are signed with.
 *
 * No secret is stored: each is derived from the data key, the id of the store and the number of the secret, its generation. The
 * database holds only numbers and instants. While a store takes a new secret into use, callbacks are signed with the old one too.
 */
export type CallbackSecrets = Awaited<ReturnType<typeof openCallbackSecrets>>

/** The most secrets of a store that are valid at once. Their owner may lose a new secret and rotate again, maybe repeatedly. */
const VALID_MAX = 4

/** Reads the generations once. Therefore every rotation in this process must go through the returned object. */
export async function openCallbackSecrets({ db, vault, now, newId }: Pick<Context, 'db' | 'vault' | 'now' | 'newId'>) {
  let rotations = await readRotations(db)

  const derived = new Map<string, Buffer>()
  /** The name of the first generation has no number, because it was chosen before secrets could be rotated. */
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
    /** Returns every secret of a store that is valid now, the newest first. */
    of: (store: string): Buffer[] => validOf(store, now()).map((generation) => secretOf(store, generation)),
    /**
     * Takes a new secret into use. `secret`: the text `whsec_…`, which is shown only this once. `previousUntil`: when the earlier
     * secrets end, epoch milliseconds. Until then, callbacks are signed with those too.
     *
     * @param overlapMs how long the earlier secrets stay valid; 0 ends all of them at once
     * @throws Failure `conflict`: `too_many_secrets` while four are valid, `rotated_meanwhile` if another rotation was faster
     */
    rotate: async (store: string, overlapMs: number, actor: string) => {
      const at = now()
      const previousUntil = at + overlapMs
      const valid = validOf(store, at)
      if (overlapMs > 0 && valid.length >= VALID_MAX) {
        const message = `${valid.length} secrets of ${store} are valid: wait until one ends, or end them all with an overlap of 0`
        throw conflict('too_many_secrets', message)
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
    /** Reads the rotations that other processes have made. */
    refresh: async () => {
      rotations = await readRotations(db)
    },
  }
}

async function readRotations(db: Database): Promise<Map<string, CallbackSecret[]>> {
  return Map.groupBy(await db.query(allCallbackSecrets()), ({ store }) => store)
}
