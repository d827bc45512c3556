import { z } from 'zod'
import { Failure } from '../../errors.ts'
import { recordOf } from '../../log.ts'
import { type ApiContext, jsonLines, ok, operation, viewer } from '../operation.ts'
import { component } from './views.ts'

const ServiceEvent = component('ServiceEvent', {
  time: z.string().meta({ format: 'date-time', description: 'When it happened' }),
  level: z.enum(['info', 'warn', 'error']).describe('How urgent it is'),
  event: z.string().meta({
    description: 'What happened',
    examples: ['delivery.applied', 'purchase.accepted', 'callback.confirmed'],
  }),
  fields: z.record(z.string(), z.unknown()).describe('Texts, numbers, yes or no, or null, by name'),
})

export function eventOperations({ tail, workerAbsentSince }: ApiContext) {
  return {
    watchEvents: operation({
      route: 'GET /events',
      summary: 'The records of the log from now on, a line of JSON each, until the client or the service ends.',
      allowed: viewer,
      answer: jsonLines(ServiceEvent),
      success: {
        200: 'Begins at once; a record that is skipped for a slow reader is counted in `tail.skipped`. Of several processes it is of this one alone, which `tail.partial` says first',
      },
      failures: { 409: '`too_many_watchers`: too many watch already' },
      async handle() {
        const isOfSeveral = workerAbsentSince !== undefined
        const records = tail.watch(isOfSeveral ? [recordOf('info', 'tail.partial', {})] : [])
        if (!records) throw new Failure('conflict', 'too many watch already', { reason: 'too_many_watchers' })
        return ok(records)
      },
    }),
  }
}
