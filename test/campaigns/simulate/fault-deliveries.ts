/** Faults of the deliveries, and of those who would like to send some. */
import { createHmac } from 'node:crypto'
import { signedHeaders } from '../../../src/sandbox/webhooks.ts'
import { attimes, type Fault } from './fault.ts'
import type { Attempt } from './sender.ts'
import { MINUTE, PUBLIC_URL } from './world.ts'

const SECOND = 1_000
const WEBHOOK_URL = `${PUBLIC_URL}/webhooks/supplier`

const bent: Fault = {
  id: 'F23',
  what: 'deliveries come twice, late, never, days later, before the answer to the order, or one ID with another body',
  lasting: true,
  begin: ({ world, chance, spanMs, fired }) => {
    const { sender, supplier, timeline, road } = world
    const kind = chance.pick(['twice', 'late', 'never', 'later', 'unheard', 'other body', 'all'] as const)
    const hook = (attempt: Attempt): void => {
      const now =
        kind === 'all' ? chance.pick(['twice', 'late', 'never', 'later', 'unheard', 'other body'] as const) : kind
      if (!chance.odds(0.7)) return
      fired()
      if (now === 'twice') attempt.againMs = chance.between(0, 30 * SECOND)
      if (now === 'late') attempt.travelMs = chance.between(SECOND, 9 * SECOND)
      if (now === 'unheard') attempt.answerLost = true
      if (now === 'never' || now === 'later') attempt.swallowed = true
      if (now === 'later') {
        const { deliveryId } = attempt.delivery
        timeline.after(chance.between(MINUTE, Math.min(spanMs, 72 * 60 * MINUTE)), () => {
          supplier.world.webhooks.resend(deliveryId)
          sender.kick()
        })
      }
      if (now === 'other body') {
        const body = attempt.body.replace('{', '{"again":1,')
        const { webhook, delivery } = attempt
        const signed = signedHeaders(supplier.dialect, {
          secret: webhook.secret,
          deliveryId: delivery.deliveryId,
          body,
          at: timeline.now(),
        })
        timeline.after(
          chance.between(0, 5 * SECOND),
          () => void sender.bring(webhook.url, { ...signed }, body, delivery.deliveryId),
        )
      }
    }
    // The news overtakes the answer.
    const slow = (trip: { key: string | undefined; backMs: number }): void => {
      if (trip.key !== undefined && chance.odds(0.3)) trip.backMs = chance.between(SECOND, 20 * SECOND)
    }
    sender.hooks.add(hook)
    road.hooks.add(slow)
    return () => {
      sender.hooks.delete(hook)
      road.hooks.delete(slow)
    }
  },
}

const forged: Fault = {
  id: 'F24',
  what: 'forged deliveries, and captured ones that are played again',
  begin: (scene) => {
    const { world, chance, fired } = scene
    const { sender, timeline, dialect, supplier } = world
    const captured: { headers: Record<string, string>; body: string }[] = []
    const listen = ({ headers, body }: Attempt): void => void captured.push({ headers, body })
    sender.hooks.add(listen)
    const forge = async (): Promise<void> => {
      fired()
      const again = captured.length > 0 && chance.odds(0.5) ? chance.pick(captured) : undefined
      const deliveryId = `forged-${chance.between(1, 1_000_000)}`
      if (again) {
        const other = chance.odds(0.5) ? { [dialect.signature.deliveryIdHeader ?? 'x']: deliveryId } : {}
        await world.endpoint(WEBHOOK_URL, distinct({ ...again.headers, ...other }), Buffer.from(again.body))
        return
      }
      const order = chance.pick(
        supplier.world.orders
          .known(20)
          .map(({ id }) => id)
          .concat('unknown'),
      )
      const body = JSON.stringify({ event: 'order.failed', data: { order_id: order, status: 'failed' } })
      const secret = createHmac('sha256', 'stranger').update(deliveryId).digest('hex')
      const headers = signedHeaders(dialect, { secret, deliveryId, body, at: timeline.now() })
      const status = await world.endpoint(WEBHOOK_URL, distinct(headers), Buffer.from(body))
      if (status !== undefined && status < 300) scene.watch.violate(`a forged delivery was answered ${status}`)
    }
    const stop = attimes(scene, chance.between(3, 12), () => void forge())
    return () => {
      stop()
      sender.hooks.delete(listen)
    }
  },
}

const distinct = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))

const rotated: Fault = {
  id: 'F33',
  what: 'signing secrets are rotated in mid-stream: two webhooks are alive; some deliveries carry an unknown secret',
  begin: (scene) => {
    const { world, chance, fired } = scene
    const stop = attimes(scene, chance.between(1, 2), () => {
      fired()
      void world.addWebhook()
    })
    const strange = (attempt: Attempt): void => {
      if (!chance.odds(0.1)) return
      const { deliveryId } = attempt.delivery
      const { body } = attempt
      const secret = 'whsec_nobody_holds_this_one_0123456789'
      Object.assign(
        attempt.headers,
        signedHeaders(world.dialect, { secret, deliveryId, body, at: world.timeline.now() }),
      )
      fired()
    }
    world.sender.hooks.add(strange)
    return () => {
      stop()
      world.sender.hooks.delete(strange)
    }
  },
}

export const deliveryFaults: Fault[] = [bent, forged, rotated]
