import { z } from 'zod'
import { createLink, endSession, personRoles } from '../../access/sessions.ts'
import { Failure } from '../../errors.ts'
import { openSessions } from '../../storage/sessions.ts'
import { consoleLinkBody } from '../input.ts'
import { type ApiContext, admin, created, ok, operation } from '../operation.ts'
import { page } from './list-operation.ts'
import { at, component, oneOf } from './views.ts'

const ConsoleLink = component('ConsoleLink', {
  link: z.string().meta({
    description: 'Shown this once: the first who opens it is signed in',
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

/** The operations of the console: links that sign people in, and the sessions of people who are signed in. */
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
    createConsoleLink: operation({
      route: 'POST /console/links',
      allowed: admin,
      body: consoleLinkBody,
      summary: 'Make a link that signs a person in to the console. It works once, within ten minutes.',
      answer: ConsoleLink,
      success: { 201: 'Made' },
      failures: { 409: 'the configuration has switched the console off, or its port is taken' },
      async handle({ caller, body: { name, role } }) {
        const address = consoleAddress()
        if (address === null) {
          const message = 'there is no console: console.listen of the configuration is null, or its port is taken'
          throw new Failure('conflict', message, { reason: 'no_console' })
        }
        const { link, row } = await createLink({ db, now, newId, randomBytes }, { name, role }, caller.actor)
        const text = `${address}/signin?link=${link.reveal()}`
        return created({ link: text, name: row.name, role: row.role, expiresAt: row.endsAt })
      },
    }),
  }
}
