/**
 * The secrets that callbacks to a store are signed with.
 *
 * None is stored: each is derived from the data key, the store and its generation, so that the database holds numbers and
 * instants alone. While a store takes a new secret into use, callbacks are signed with the old one too.
 */
import { codeOf, Failure } from './errors.ts'
import { Secret } from './secret.ts'
import {
  allCallbackSecrets,
  type CallbackSecret,
  endCallbackSecrets,
  insertCallbackSecret,
} from './storage/callback-secrets.ts'
import type { Database } from './storage/database.ts'
import { insertAudit } from './storage/evidence.ts'
import type { Vault } from './storage/vault.ts'
import { secretText } from './stores/webhook-signature.ts'

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
   * @throws Failure `conflict`: `too_many_secrets` while four are valid, `rotated_meanwhile` when another one was faster
   */
  rotate(store: string, overlapMs: number, actor: string): Promise<NewCallbackSecret>
}

/** Signatures in one header: a store that lost a new secret before it was installed asks for another one, and again. */
const VALID_MAX = 4

/** Reads the generations once; whoever rotates goes through what this returns. */
export async function openCallbackSecrets(deps: CallbackSecretsDeps): Promise<CallbackSecrets> {
  const { db, vault, now, newId } = deps
  let rotations = await readRotations(db)

  /** The first generation has the name that it had before there were others. */
  const secretOf = (store: string, generation: number): Buffer =>
    vault.subKey(generation === 1 ? `callback:${store}` : `callback:${store}:${generation}`)

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
  }
}

async function readRotations(db: Database): Promise<Map<string, CallbackSecret[]>> {
  return Map.groupBy(await db.query(allCallbackSecrets()), ({ store }) => store)
}
