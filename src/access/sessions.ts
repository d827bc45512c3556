/**
 * How people sign in to the console. A link is made on the machine itself and signs in once; it begins a session.
 */
import { timingSafeEqual } from 'node:crypto'
import { Failure } from '../errors.ts'
import { Secret } from '../secret.ts'
import { type Change, type Database, first, StaleWrite } from '../storage/database.ts'
import { audited } from '../storage/evidence.ts'
import {
  dropAllLinks,
  dropLinksOf,
  forgetLinks,
  forgetSessions,
  insertLink,
  insertSession,
  type LinkRow,
  linkByDigest,
  openSessions,
  prolongSession,
  redeemLink,
  revokeAllSessions,
  revokeSession,
  revokeSessionsOf,
  sessionByDigest,
} from '../storage/sessions.ts'
import { type Caller, type Role, type TokenContext, tokenDigest } from './tokens.ts'

/** The roles that a person may have. */
export type PersonRole = Exclude<Role, 'store'>
export const personRoles = ['viewer', 'operator', 'admin'] as const satisfies PersonRole[]

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** How long a link may be used. The time is enough to paste the link; a link that stays on a screen is soon worth nothing. */
export const LINK_MS = 10 * MINUTE_MS
/** A session ends `IDLE_MS` after its last use, and `SESSION_MS` after its beginning at the latest. */
export const IDLE_MS = 12 * HOUR_MS
export const SESSION_MS = 7 * 24 * HOUR_MS
/** The last use of a session is stored at most once in this time, because the live parts of a page ask every few seconds. */
const PROLONG_MS = 5 * MINUTE_MS

/** A person who is signed in. */
export interface SessionCaller extends Caller {
  role: PersonRole
  /** The id of the session. */
  id: string
  name: string
}

/** Makes a link. Only the returned value has the text of the link. */
export async function createLink(
  { db, now, newId, randomBytes }: TokenContext,
  { name, role }: { name: string; role: PersonRole },
  actor: string,
): Promise<{ link: Secret; row: LinkRow }> {
  const text = randomBytes(32).toString('base64url')
  const row = { digest: tokenDigest(text), name, role, createdAt: now(), endsAt: now() + LINK_MS }
  await db.commit([insertLink(row), audited({ newId, now }, actor, 'console.link', name, role)])
  return { link: new Secret(text), row }
}

const GONE = 'the link has expired, was used, or is not whole'

/** Returns the name and the role that a link would sign in with; undefined when the link is not good. `signIn` uses the link. */
export async function readLink(
  { db, now }: Pick<TokenContext, 'db' | 'now'>,
  text: string,
): Promise<{ name: string; role: PersonRole; endsAt: number } | undefined> {
  const row = await goodLink(db, text, now())
  return row && { name: row.name, role: row.role as PersonRole, endsAt: row.endsAt }
}

async function goodLink(db: Database, text: string, now: number): Promise<LinkRow | undefined> {
  const digest = tokenDigest(text)
  const row = await first(db, linkByDigest(digest))
  return row && timingSafeEqual(row.digest, digest) && row.endsAt > now ? row : undefined
}

/**
 * Begins a session with a link. The link is used up then.
 *
 * @returns the text that the browser keeps
 * @throws Failure `unauthenticated` for a link that is not good
 */
export async function signIn({ db, now, newId, randomBytes }: TokenContext, text: string): Promise<Secret> {
  const at = now()
  const row = await goodLink(db, text, at)
  if (!row) throw new Failure('unauthenticated', GONE)
  const key = randomBytes(32).toString('base64url')
  const { name, role } = row
  const session = { id: newId(), digest: tokenDigest(key), name, role, createdAt: at, seenAt: at, endsAt: at + IDLE_MS }
  const changes = [
    redeemLink(row.digest, at),
    insertSession(session),
    audited({ newId, now }, actorOf(session), 'console.sign_in', session.id, role),
  ]
  await db.commit(changes).catch((error: unknown) => {
    throw error instanceof StaleWrite ? new Failure('unauthenticated', GONE) : error
  })
  return new Secret(key)
}

const actorOf = ({ name, id }: { name: string; id: string }): string => `${name} (console ${id})`

/** Finds the holder of a session by the text that the browser keeps; undefined when no such session is open. */
export async function sessionCaller(
  { db, now }: Pick<TokenContext, 'db' | 'now'>,
  text: string,
): Promise<SessionCaller | undefined> {
  const digest = tokenDigest(text)
  const at = now()
  const row = await first(db, sessionByDigest(digest))
  if (!row || !timingSafeEqual(row.digest, digest) || row.revokedAt !== null || row.endsAt <= at) return undefined
  if (at >= row.seenAt + PROLONG_MS) {
    const endsAt = Math.min(at + IDLE_MS, row.createdAt + SESSION_MS)
    await db.commit([prolongSession(row.id, { seenAt: at, endsAt })])
  }
  const { id, name } = row
  return { actor: actorOf(row), role: row.role as PersonRole, store: null, scopes: new Set(), id, name }
}

/** The sessions that a sign-out ends: this session, all sessions under the person's name, or the sessions of all people. */
export const signOutScopes = ['here', 'own', 'all'] as const
export type SignOutScope = (typeof signOutScopes)[number]

/** Ends sessions. `own` and `all` also delete the unused links. @throws Failure `forbidden` where the role may not do this */
export async function signOut(
  { db, now, newId }: Omit<TokenContext, 'randomBytes'>,
  caller: SessionCaller,
  scope: SignOutScope,
): Promise<void> {
  const at = now()
  const changes: Record<SignOutScope, () => Change[]> = {
    here: () => [revokeSession(caller.id, at)],
    own: () => [revokeSessionsOf(caller.name, at), dropLinksOf(caller.name)],
    all: () => [revokeAllSessions(at), dropAllLinks()],
  }
  if (scope === 'all' && caller.role !== 'admin') {
    throw new Failure('forbidden', `this needs the role admin; you are ${caller.role}`)
  }
  const audit = audited({ newId, now }, caller.actor, 'console.sign_out', caller.id, scope)
  await db.commit([...changes[scope](), audit])
}

/** Ends the session of any person at once. @throws Failure `not_found` where no open session has this id */
export async function endSession(
  { db, now, newId }: Omit<TokenContext, 'randomBytes'>,
  id: string,
  actor: string,
): Promise<void> {
  const at = now()
  if (!(await db.query(openSessions(at))).some((session) => session.id === id)) {
    throw new Failure('not_found', 'no session that is open has this id')
  }
  await db.commit([revokeSession(id, at), audited({ newId, now }, actor, 'console.end_session', id)])
}

/** How long the rows of ended links and sessions are kept. */
const KEEP_MS = 24 * HOUR_MS

/** Deletes links and sessions that ended long ago. The audit keeps who signed in. */
export async function forgetEnded({ db, now }: Pick<TokenContext, 'db' | 'now'>): Promise<void> {
  const before = now() - KEEP_MS
  await db.commit([forgetLinks(before), forgetSessions(before)])
}
