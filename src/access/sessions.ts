/**
 * People in the console: a link that signs in once, made on the machine itself, and the session that it begins.
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

/** What a person may be. */
export type PersonRole = Exclude<Role, 'store'>
export const personRoles = ['viewer', 'operator', 'admin'] as const satisfies PersonRole[]

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** How long a link may be used: long enough to paste it, short enough that one in a scrollback is worth nothing. */
export const LINK_MS = 10 * MINUTE_MS
/** A session ends this long after its last use, and this long after its beginning at the latest. */
export const IDLE_MS = 12 * HOUR_MS
export const SESSION_MS = 7 * 24 * HOUR_MS
/** Uses within this time are written once: the live parts of a page ask every few seconds. */
const PROLONG_MS = 5 * MINUTE_MS

/** A person who is signed in. */
export interface SessionCaller extends Caller {
  role: PersonRole
  /** The id of the session. */
  id: string
  name: string
}

/** Makes a link. Its text is in what this returns and nowhere else. */
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

/** What a link would sign in as; undefined when it is not good. Using it is `signIn`. */
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
 * Begins a session by a link, which is used up by it.
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

/** Who holds a session, by the text that the browser keeps; undefined when it has ended or never was. */
export async function sessionCaller(
  { db, now }: Pick<TokenContext, 'db' | 'now'>,
  text: string,
): Promise<SessionCaller | undefined> {
  const digest = tokenDigest(text)
  const at = now()
  const row = await first(db, sessionByDigest(digest))
  if (!row || !timingSafeEqual(row.digest, digest) || row.revokedAt !== null || row.endsAt <= at) return undefined
  if (at >= row.seenAt + PROLONG_MS) {
    await db.commit([prolongSession(row.id, at, Math.min(at + IDLE_MS, row.createdAt + SESSION_MS))])
  }
  const { id, name } = row
  return { actor: actorOf(row), role: row.role as PersonRole, store: null, scopes: new Set(), id, name }
}

/** What a person who signs out ends: this session, all sessions under the name, or those of all people. */
export const signOutScopes = ['here', 'own', 'all'] as const
export type SignOutScope = (typeof signOutScopes)[number]

/** Links that were not used go with the sessions. @throws Failure `forbidden` where the role may not */
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

/** Ends a session of anyone at once. @throws Failure `not_found` where no session that is open has this id */
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

/** How long rows of what has ended are kept. */
const KEEP_MS = 24 * HOUR_MS

/** Deletes links and sessions that ended long ago. The audit keeps who signed in. */
export async function forgetEnded({ db, now }: Pick<TokenContext, 'db' | 'now'>): Promise<void> {
  const before = now() - KEEP_MS
  await db.commit([forgetLinks(before), forgetSessions(before)])
}
