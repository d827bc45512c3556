import { createHash, timingSafeEqual } from 'node:crypto'
import type { Context } from '../context.ts'
import { Failure } from '../errors.ts'
import { Secret } from '../secret.ts'
import { first, StaleWrite } from '../storage/database.ts'
import { audited } from '../storage/evidence.ts'
import { allTokens, insertToken, revokeToken as markRevoked, type TokenRow, tokenByDigest } from '../storage/tokens.ts'

export const roles = ['store', 'viewer', 'operator', 'admin'] as const
export type Role = (typeof roles)[number]

/** What a store token may do: `orders` places and shows orders, `keys` shows the licence keys in them. */
export const scopes = ['orders', 'keys'] as const
export type Scope = (typeof scopes)[number]

/** Makes a bearer token. @param randomBytes gives the requested count of bytes from a cryptographic source */
export function mintToken(role: Role, randomBytes: (count: number) => Buffer) {
  // The prefix is for secret scanners.
  const text = `qs_${role.charAt(0)}_${randomBytes(32).toString('base64url')}`
  return {
    token: new Secret(text),
    /** Of the token itself, only this digest and the hint are stored. */
    digest: tokenDigest(text),
    /** The prefix and 4 characters: enough to distinguish tokens in a list. 232 bits of the token stay unknown. */
    hint: text.slice(0, 9),
  }
}

/** The SHA-256 of a token. A token has 256 random bits, so a slow hash would only slow requests down. */
export const tokenDigest = (token: string): Buffer => createHash('sha256').update(token).digest()

export interface TokenContext extends Pick<Context, 'db' | 'now' | 'newId'> {
  randomBytes: (count: number) => Buffer
}

export interface NewToken {
  name: string
  role: Role
  /** The one store that a store token speaks for; null for people. */
  store: string | null
  scopes: Scope[]
  /** Null: the token is good until it is revoked. */
  expiresInDays: number | null
}

/** A token that the backend of a store hands its orders in with. */
export const tokenOfStore = (store: string, name: string): NewToken => ({
  name,
  role: 'store',
  store,
  scopes: ['orders', 'keys'],
  expiresInDays: null,
})

const DAY_MS = 24 * 60 * 60 * 1000

/** Makes and stores a token. Only the returned value has the text of the token. */
export async function createToken(
  { db, now, newId, randomBytes }: TokenContext,
  { expiresInDays, ...wanted }: NewToken,
  actor: string,
): Promise<{ token: Secret; row: TokenRow }> {
  const { token, digest, hint } = mintToken(wanted.role, randomBytes)
  const at = now()
  const expiresAt = expiresInDays === null ? null : at + expiresInDays * DAY_MS
  const row: TokenRow = { id: newId(), ...wanted, digest, hint, createdAt: at, revokedAt: null, expiresAt }
  const detail = [row.role, row.store, ...wanted.scopes].filter(Boolean).join(' ')
  await db.commit([insertToken(row), audited({ newId, now }, actor, 'token.create', row.id, detail)])
  return { token, row }
}

/** Revokes a token at once. @throws Failure `not_found` when no token that is still good has this id */
export async function revokeToken({ db, now, newId }: TokenContext, id: string, actor: string): Promise<TokenRow> {
  const gone = new Failure('not_found', 'no token has this id, or it is revoked already')
  const at = now()
  const row = (await db.query(allTokens())).find((token) => token.id === id)
  if (!row || row.revokedAt !== null) throw gone
  const audit = audited({ newId, now }, actor, 'token.revoke', id)
  await db.commit([markRevoked(id, at), audit]).catch((error: unknown) => {
    throw error instanceof StaleWrite ? gone : error
  })
  return { ...row, revokedAt: at }
}

/** The caller, as its token or session identifies it. */
export interface Caller {
  /** The name of the caller in the audit: the name and id of its token or session, or `owner`. */
  actor: string
  role: Role
  /** The one store that the caller speaks for; null for people. */
  store: string | null
  scopes: ReadonlySet<string>
}

/** Who may call: people with this role or a higher one, store tokens with this scope, or both. */
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

/** @param ownerDigest SHA-256 of the owner token, which is made at each start and is never in the database */
export function createAuth({ db, now }: Pick<TokenContext, 'db' | 'now'>, ownerDigest: Buffer): Authenticate {
  return async (authorization) => {
    const [value = '', ...others] = authorization ?? []
    // With two headers, a proxy may read one and this service the other.
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

/** A role may do all that the roles of a lower rank may do. A store token has no rank. */
export const RANK = { viewer: 1, operator: 2, admin: 3 } as const

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
