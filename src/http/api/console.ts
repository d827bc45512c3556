import { z } from 'zod'
import { endSession, invite, listPeople, personRoles, removePerson } from '../../access/sessions.ts'
import { Failure } from '../../errors.ts'
import { openSessions } from '../../storage/sessions.ts'
import { consoleLinkBody, removePersonBody } from '../input.ts'
import { type ApiContext, admin, created, ok, operation, operator, viewer } from '../operation.ts'
import { page } from './list-operation.ts'
import { at, component, count, maybeAt, oneOf } from './views.ts'

const ConsoleLink = component('ConsoleLink', {
  link: z.string().meta({
    description: 'Shown this once. Opening it shows a button, and the first who presses it is signed in',
    examples: ['http://127.0.0.1:8081/signin?link=…'],
  }),
  name: z.string(),
  role: oneOf(personRoles),
  expiresAt: at,
})

const Session = component('ConsoleSession', {
  id: z.string(),
  name: z.string(),
  role: oneOf(personRoles),
  createdAt: at,
  seenAt: at.describe('Its last use, to five minutes'),
  endsAt: at.describe('Unless it is used again'),
})

const Person = component('ConsolePerson', {
  name: z.string(),
  role: oneOf(personRoles),
  seenAt: maybeAt.describe('The last use of a session, to five minutes; null: never signed in'),
  sessions: count.describe('How many sessions are open'),
  linkUntil: maybeAt.describe('Until when an unused link signs the person in; null: there is none'),
})

export function consoleOperations({ ordering, randomBytes, consoleAddress }: ApiContext) {
  const { db, now, newId } = ordering
  return {
    listSessions: operation({
      route: 'GET /console/sessions',
      allowed: admin,
      summary: 'The sessions of the console that are open, the last one begun first.',
      answer: page(Session),
      success: { 200: 'All of them' },
      handle: async () => ok({ items: await db.query(openSessions(now())), next: null }),
    }),
    endSession: operation({
      route: 'DELETE /console/sessions/:id',
      allowed: admin,
      summary: 'End a session of the console at once. Signing in again needs a new link.',
      answer: z.object({ id: z.string() }),
      success: { 200: 'Ended' },
      failures: { 404: 'no session that is open has this id' },
      async handle({ caller, path: { id } }) {
        await endSession({ db, now, newId }, id, caller.actor)
        return ok({ id })
      },
    }),
    listPeople: operation({
      route: 'GET /console/people',
      allowed: viewer,
      summary: 'Who has a session of the console, had one within 90 days, or has a link that is not used.',
      answer: page(Person),
      success: { 200: 'All of them, the one who was seen last first' },
      handle: async () => ok({ items: await listPeople({ db, now }), next: null }),
    }),
    removePerson: operation({
      route: 'POST /console/people/remove',
      allowed: admin,
      body: removePersonBody,
      summary:
        'End every session and every unused link of a person, and forget the person. The audit keeps what the person did.',
      answer: z.object({ name: z.string() }),
      success: { 200: 'Removed' },
      failures: { 404: 'no person of this name has a session or a link' },
      async handle({ caller, body: { name, reason } }) {
        await removePerson({ db, now, newId }, name, caller.actor, reason)
        return ok({ name })
      },
    }),
    createConsoleLink: operation({
      route: 'POST /console/links',
      allowed: operator,
      body: consoleLinkBody,
      summary:
        'Make a link that signs a person in to the console, once. Its role is at most that of the caller, and so is that of the person.',
      answer: ConsoleLink,
      success: { 201: 'Made' },
      failures: { 409: 'the configuration has switched the console off, or its port is taken' },
      async handle({ caller, body: { name, role, hours } }) {
        const address = consoleAddress()
        if (address === null) {
          const message = 'there is no console: console.listen of the configuration is null, or its port is taken'
          throw new Failure('conflict', message, { reason: 'no_console' })
        }
        const wanted = { name, role, ...(hours && { ms: hours * 3_600_000 }) }
        const { link, row } = await invite({ db, now, newId, randomBytes }, wanted, caller)
        const text = `${address}/signin?link=${link.reveal()}`
        return created({ link: text, name: row.name, role: row.role, expiresAt: row.endsAt })
      },
    }),
  }
}
