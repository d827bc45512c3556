/**
 * How people sign in to the console. A link is made on the machine itself, or by a colleague in the console, and signs in once; it
 * begins a session.
 */
import { timingSafeEqual } from 'node:crypto'
import { Failure } from '../errors.ts'
import { Secret } from '../secret.ts'
import { type Change, type Database, first, StaleWrite } from '../storage/database.ts'
import { audited } from '../storage/evidence.ts'
import {
  dropAllLinks,
  dropLinksOf,
  dropSessionsOf,
  forgetLinks,
  forgetSessions,
  insertLink,
  insertSession,
  type LinkRow,
  linkByDigest,
  openLinks,
  openSessions,
  peopleSeen,
  prolongSession,
  redeemLink,
  revokeAllSessions,
  revokeSession,
  revokeSessionsOf,
  sessionByDigest,
} from '../storage/sessions.ts'
import { type Caller, RANK, type Role, type TokenContext, tokenDigest } from './tokens.ts'

/** The roles that a person may have. */
export type PersonRole = Exclude<Role, 'store'>
export const personRoles = ['viewer', 'operator', 'admin'] as const satisfies PersonRole[]

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** How long a link may be used. The time is enough to paste the link; a link that stays on a screen is soon worth nothing. */
export const LINK_MS = 10 * MINUTE_MS
/** How long a link for a colleague may be used: until tomorrow, because the colleague may be away. */
export const INVITATION_MS = 24 * HOUR_MS
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

export interface NewLink {
  name: string
  role: PersonRole
  /** How long the link may be used (default: `LINK_MS`). */
  ms?: number
}

/** Makes a link. Only the returned value has the text of the link. */
export async function createLink(
  { db, now, newId, randomBytes }: TokenContext,
  { name, role, ms = LINK_MS }: NewLink,
  actor: string,
): Promise<{ link: Secret; row: LinkRow }> {
  const text = randomBytes(32).toString('base64url')
  const row = { digest: tokenDigest(text), name, role, createdAt: now(), endsAt: now() + ms }
  const detail = ms === LINK_MS ? role : `${role}, until ${new Date(row.endsAt).toISOString()}`
  await db.commit([insertLink(row), audited({ newId, now }, actor, 'console.link', name, detail)])
  return { link: new Secret(text), row }
}

/**
 * Makes a link in the name of a caller, for the caller or for another person.
 *
 * @throws Failure `forbidden` for a role above that of the caller, and for the name of a person whose role is above it: who signs in
 *   under a name does everything under that name
 */
export async function invite(context: TokenContext, wanted: NewLink, caller: Caller) {
  const own = caller.role === 'store' ? 0 : RANK[caller.role]
  if (RANK[wanted.role] > own) {
    throw new Failure('forbidden', `a link of the role ${wanted.role} needs that role; you are ${caller.role}`)
  }
  const above = (await listPeople(context)).find(({ name, role }) => alike(name, wanted.name) && RANK[role] > own)
  if (above)
    throw new Failure('forbidden', `${above.name} is ${above.role}, and a link under that name needs that role`)
  return createLink(context, wanted, caller.actor)
}

/** Whether people would take one name for the other. */
const alike = (one: string, other: string): boolean => readAs(one) === readAs(other)
const readAs = (name: string): string => name.normalize('NFKC').toLowerCase().replaceAll(/\s+/g, ' ')

/** A person who has a link, or had a session within the last 90 days. */
export interface Person {
  name: string
  /** The highest role that an open session or an unused link of the person has; else the role of the last session. */
  role: PersonRole
  /** Null: the person has never signed in. */
  seenAt: number | null
  /** How many sessions are open. */
  sessions: number
  /** Until when an unused link is good; null where there is none. */
  linkUntil: number | null
}

/** The people that are known, the one who was seen last first; then those who have never signed in. */
export async function listPeople({ db, now }: Pick<TokenContext, 'db' | 'now'>): Promise<Person[]> {
  const at = now()
  const [seen, open, links] = await Promise.all([
    db.query(peopleSeen()),
    db.query(openSessions(at)),
    db.query(openLinks(at)),
  ])
  const bySeen = seen.toSorted((a, b) => b.seenAt - a.seenAt || (a.name < b.name ? -1 : 1))
  const names = new Set([...bySeen, ...links.toSorted((a, b) => a.createdAt - b.createdAt)].map(({ name }) => name))
  return [...names].map((name) => {
    const of = <R extends { name: string }>(rows: readonly R[]) => rows.filter((row) => row.name === name)
    const [sessions, unused, [last]] = [of(open), of(links), of(bySeen)]
    const roles = [...sessions, ...unused].map(({ role }) => role as PersonRole)
    const [highest = last?.role as PersonRole] = roles.toSorted((a, b) => RANK[b] - RANK[a])
    const linkUntil = unused.length === 0 ? null : Math.max(...unused.map(({ endsAt }) => endsAt))
    return { name, role: highest, seenAt: last?.seenAt ?? null, sessions: sessions.length, linkUntil }
  })
}

/** Ends the sessions and the unused links of a person, and forgets the person. @throws Failure `not_found` for a name that no person has */
export async function removePerson(
  { db, now, newId }: Omit<TokenContext, 'randomBytes'>,
  name: string,
  actor: string,
  reason?: string,
): Promise<void> {
  if (!(await listPeople({ db, now })).some((person) => person.name === name)) {
    throw new Failure('not_found', 'no person of this name has a session or a link')
  }
  const audit = audited({ newId, now }, actor, 'console.remove_person', name, reason)
  // The links go first: one that is redeemed at this moment has then begun its session, which ends as well.
  await db.commit([dropLinksOf(name), dropSessionsOf(name), audit])
}

const GONE = 'the link has expired, was used, or is not whole'

/** Returns the name and the role that a link would sign in with; undefined when the link is not good. `signIn` uses the link. */
export async function readLink({ db, now }: Pick<TokenContext, 'db' | 'now'>, text: string) {
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

/** How long the rows of ended links are kept, and those of ended sessions: a person who has not signed in for so long is forgotten. */
const KEEP_LINKS_MS = 24 * HOUR_MS
const KEEP_SESSIONS_MS = 90 * 24 * HOUR_MS

/** Deletes links and sessions that ended long ago. The audit keeps who signed in. */
export async function forgetEnded({ db, now }: Pick<TokenContext, 'db' | 'now'>): Promise<void> {
  await db.commit([forgetLinks(now() - KEEP_LINKS_MS), forgetSessions(now() - KEEP_SESSIONS_MS)])
}
