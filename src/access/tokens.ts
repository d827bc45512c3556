import { createHash } from 'node:crypto'
import type { Context } from '../context.ts'
import { Failure } from '../errors.ts'
import { Secret } from '../secret.ts'
import { StaleWrite } from '../storage/database.ts'
import { insertAudit } from '../storage/evidence.ts'
import { allTokens, insertToken, revokeToken as markRevoked, type TokenRow } from '../storage/tokens.ts'

export const roles = ['store', 'viewer', 'operator', 'admin'] as const
export type Role = (typeof roles)[number]

/** What a store token may do: place and see orders, and see the licence keys in them. */
export const scopes = ['orders', 'keys'] as const
export type Scope = (typeof scopes)[number]

export interface Minted {
  /** `qs_<first letter of the role>_` and 256 random bits in base64url; the prefix is for secret scanners. */
  token: Secret
  /** SHA-256 of it: all that is stored. */
  digest: Buffer
  /** Enough to distinguish tokens in a list: the prefix and 4 characters, which leaves 232 bits unknown. */
  hint: string
}

/** Makes a bearer token. @param randomBytes gives that many bytes of a cryptographic source */
export function mintToken(role: Role, randomBytes: (count: number) => Buffer): Minted {
  const text = `qs_${role.charAt(0)}_${randomBytes(32).toString('base64url')}`
  return { token: new Secret(text), digest: tokenDigest(text), hint: text.slice(0, 9) }
}

/** SHA-256: a token has 256 random bits, so that a slow hash would only slow requests down. */
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
  /** Null: until it is revoked. */
  expiresInDays: number | null
}

const DAY_MS = 24 * 60 * 60 * 1000

/** Makes and stores a token. Its text is in what this returns and nowhere else. */
export async function createToken(
  { db, now, newId, randomBytes }: TokenContext,
  input: NewToken,
  actor: string,
): Promise<{ token: Secret; row: TokenRow }> {
  const { token, digest, hint } = mintToken(input.role, randomBytes)
  const at = now()
  const row: TokenRow = {
    id: newId(),
    name: input.name,
    digest,
    hint,
    role: input.role,
    store: input.store,
    scopes: input.scopes,
    createdAt: at,
    revokedAt: null,
    expiresAt: input.expiresInDays === null ? null : at + input.expiresInDays * DAY_MS,
  }
  const detail = [row.role, row.store, ...input.scopes].filter(Boolean).join(' ')
  await db.commit([
    insertToken(row),
    insertAudit({ id: newId(), at, actor, action: 'token.create', subject: row.id, detail }),
  ])
  return { token, row }
}

/** Revokes a token at once. @throws Failure `not_found` when no token that is still good has this id */
export async function revokeToken({ db, now, newId }: TokenContext, id: string, actor: string): Promise<TokenRow> {
  const gone = new Failure('not_found', 'no token has this id, or it is revoked already')
  const at = now()
  const row = (await db.query(allTokens())).find((token) => token.id === id)
  if (!row || row.revokedAt !== null) throw gone
  const audit = insertAudit({ id: newId(), at, actor, action: 'token.revoke', subject: id })
  await db.commit([markRevoked(id, at), audit]).catch((error: unknown) => {
    throw error instanceof StaleWrite ? gone : error
  })
  return { ...row, revokedAt: at }
}
