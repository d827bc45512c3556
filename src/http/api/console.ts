import { z } from 'zod'
import { createLink, personRoles } from '../../access/sessions.ts'
import { Failure } from '../../errors.ts'
import { consoleLinkBody } from '../input.ts'
import { type ApiContext, type Operation, operation } from '../operation.ts'
import { at, oneOf } from './views.ts'

const ConsoleLink = z
  .object({
    link: z.string().meta({
      description: 'Shown this once: the first who opens it is signed in',
      examples: ['http://127.0.0.1:8081/signin?link=…'],
    }),
    name: z.string(),
    role: oneOf(personRoles),
    expiresAt: at,
  })
  .meta({ id: 'ConsoleLink' })

/** The way into the console. */
export function consoleOperations({
  ordering,
  randomBytes,
  consoleAddress,
}: Pick<ApiContext, 'ordering' | 'randomBytes' | 'consoleAddress'>): Operation[] {
  const { db, now, newId } = ordering
  return [
    operation({
      name: 'createConsoleLink',
      method: 'post',
      path: '/console/links',
      allowed: { people: 'admin' },
      body: consoleLinkBody,
      summary: 'Make a link that signs a person in to the console. It works once, within ten minutes.',
      answer: ConsoleLink,
      success: { 201: 'Made' },
      failures: { 409: 'the configuration has switched the console off, or its port is taken' },
      async handle({ caller, body: { name, role } }) {
        const address = consoleAddress()
        if (address === null) {
          throw new Failure(
            'conflict',
            'there is no console: console.listen of the configuration is null, or its port is taken',
            {
              reason: 'no_console',
            },
          )
        }
        const { link, row } = await createLink({ db, now, newId, randomBytes }, { name, role }, caller.actor)
        const text = `${address}/signin?link=${link.reveal()}`
        return { status: 201, data: { link: text, name: row.name, role: row.role, expiresAt: row.endsAt } }
      },
    }),
  ]
}
