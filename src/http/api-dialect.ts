import { z } from 'zod'
import type { CaptureEntry, Captures } from '../inbox/capture.ts'
import { iso } from './api-views.ts'
import { type Operation, ok, operation } from './operation.ts'

/** What the API needs beside the flows of everyday. */
export interface CaptureFlows {
  capture: Pick<Captures, 'start' | 'open' | 'list' | 'show'>
}

const at = z.string().meta({ format: 'date-time', examples: ['2026-03-01T09:30:00.000Z'] })
const CaptureState = z.object({
  closesAt: at.meta({ description: 'Until then refused deliveries are taken' }),
  keptUntil: at.meta({ description: 'Then they are deleted' }),
  left: z.int().min(0).meta({ description: 'How many more are taken' }),
})
const entry = { id: z.string(), path: z.string(), reason: z.string(), receivedAt: at }
const CaptureList = z.object({
  open: CaptureState.nullable().meta({ description: 'The capture that goes on' }),
  items: z.array(z.object(entry)),
})
const CaptureDetail = z.object({
  ...entry,
  headers: z.record(z.string(), z.array(z.string())),
  body: z.string().meta({ description: 'The bytes as they came, in base64' }),
})

/** Refused deliveries, kept for a while for the person who fits a dialect. */
export function dialectOperations({ flows }: { flows: CaptureFlows }): Operation[] {
  const admin = { people: 'admin' } as const
  const path = '/captures'
  return [
    operation({
      ...{ name: 'startCapture', method: 'post', path, allowed: admin, answer: CaptureState },
      summary: 'Keep the next refused deliveries, at most 10 in 15 minutes, to find out how they are signed.',
      success: { 201: 'From now on; what was kept before is deleted' },
      handle: async ({ caller }) => ({ status: 201, data: stateView(await flows.capture.start(caller.actor)) }),
    }),
    operation({
      ...{ name: 'listCaptures', method: 'get', path, allowed: admin, answer: CaptureList },
      ...{ summary: 'Refused deliveries that are kept, oldest first.', success: { 200: 'All of them' } },
      async handle() {
        const open = flows.capture.open()
        return ok({ open: open ? stateView(open) : null, items: (await flows.capture.list()).map(entryView) })
      },
    }),
    operation({
      ...{ name: 'viewCapture', method: 'get', path: `${path}/:id`, allowed: admin, answer: CaptureDetail },
      summary: 'One refused delivery as it came, headers and body; the audit records it.',
      ...{ success: { 200: 'The delivery' }, failures: { 404: 'unknown id, or deleted already' } },
      async handle({ caller, path: { id = '' } }) {
        const { headers, body, ...rest } = await flows.capture.show(id, caller.actor)
        return ok({ ...entryView(rest), headers, body })
      },
    }),
  ]
}

const stateView = (window: { closesAt: number; keptUntil: number; left: number }) => ({
  closesAt: iso(window.closesAt),
  keptUntil: iso(window.keptUntil),
  left: window.left,
})

const entryView = ({ id, path, reason, receivedAt }: CaptureEntry) => ({
  id,
  path,
  reason,
  receivedAt: iso(receivedAt),
})
