import { timingSafeEqual } from 'node:crypto'
import { Failure } from '../errors.ts'
import { type Database, first } from '../storage/database.ts'
import { tokenByDigest } from '../storage/tokens.ts'
import { type Role, type Scope, tokenDigest } from './tokens.ts'

/** The caller, by its token. */
export interface Caller {
  /** For the audit: the token's name and id, or `owner`. */
  actor: string
  role: Role
  /** The one store that it speaks for; null for people. */
  store: string | null
  scopes: ReadonlySet<string>
}

/** Who may call: people from this role on, store tokens with this scope, or both. */
export interface Allowed {
  people?: Exclude<Role, 'store'>
  store?: Scope
}

/**
 * Identifies the holder of a bearer token.
 *
 * @param authorization the values of the header, one for each line
 * @throws Failure `unauthenticated` for a missing, repeated, malformed, unknown, expired or revoked token
 */
export type Authenticate = (authorization: string[] | undefined) => Promise<Caller>

export interface AuthOptions {
  db: Database
  /** SHA-256 of the owner token, which is made at each start and is never in the database. */
  ownerDigest: Buffer
  /** Epoch milliseconds. */
  now: () => number
}

export function createAuth({ db, ownerDigest, now }: AuthOptions): Authenticate {
  return async (authorization) => {
    const [value = '', ...others] = authorization ?? []
    // A proxy may read one of them and this service the other.
    if (others.length > 0) throw new Failure('unauthenticated', 'send one Authorization header, not several')
    const token = /^Bearer ([\x21-\x7e]{1,200})$/i.exec(value)?.[1]
    if (token === undefined) throw new Failure('unauthenticated', 'send a token: Authorization: Bearer <token>')
    const digest = tokenDigest(token)
    if (timingSafeEqual(digest, ownerDigest)) {
      return { actor: 'owner', role: 'admin', store: null, scopes: new Set() }
    }
    const row = await first(db, tokenByDigest(digest))
    if (!row || !timingSafeEqual(row.digest, digest) || row.revokedAt !== null) {
      throw new Failure('unauthenticated', 'the token is unknown or revoked')
    }
    if (row.expiresAt !== null && row.expiresAt <= now()) {
      throw new Failure('unauthenticated', `the token expired at ${new Date(row.expiresAt).toISOString()}`)
    }
    const scopes = new Set(row.scopes)
    return { actor: `${row.name} (${row.id})`, role: row.role as Role, store: row.store, scopes }
  }
}

/** What a role may do includes what those before it may. A store token is none of them. */
const RANK = { viewer: 1, operator: 2, admin: 3 } as const

/** @throws Failure `forbidden` that names the role or scope that is needed */
export function assertAllowed(caller: Caller, { people, store }: Allowed): void {
  if (caller.role === 'store') {
    if (store === undefined) throw new Failure('forbidden', `this needs the role ${people}, not a store token`)
    if (!caller.scopes.has(store)) throw new Failure('forbidden', `this needs a token with the scope ${store}`)
    return
  }
  if (people === undefined) throw new Failure('forbidden', `this needs a store token with the scope ${store}`)
  if (RANK[caller.role] < RANK[people]) {
    throw new Failure('forbidden', `this needs the role ${people}; the token has the role ${caller.role}`)
  }
}
