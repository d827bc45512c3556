import { Failure } from './errors.ts'
import type { Flows } from './http/flows.ts'
import type { Inbox } from './inbox/receive.ts'
import { type CheckDeps, checkWebhooks, createWebhook, retireWebhook, rotateWebhook } from './inbox/webhooks.ts'

/** @param inbox learns of every change at once: what is signed with a new secret may come before the answer does */
export function webhookFlows({
  inbox,
  ...deps
}: CheckDeps & { inbox: Pick<Inbox, 'reload' | 'traffic'> }): Pick<
  Flows,
  'createWebhook' | 'rotateWebhook' | 'retireWebhook' | 'checkWebhooks' | 'webhookTraffic'
> {
  let last: Promise<unknown> = Promise.resolve()
  /** One after the other: one that is being created is at the supplier before its secret is here, and looks unheld. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = last.then(work).finally(inbox.reload)
    last = turn.catch(() => undefined)
    return turn
  }
  const address = (url: string | undefined): string => {
    const publicUrl = url ?? deps.publicUrl
    if (publicUrl !== null) return publicUrl
    throw new Failure('invalid', 'a webhook needs an address that the supplier can reach', {
      fields: [{ field: 'url', message: 'name one, or set publicUrl in the configuration' }],
    })
  }
  return {
    createWebhook: async (url, actor) => {
      const publicUrl = address(url)
      return inTurn(() => createWebhook(deps, publicUrl, actor))
    },
    rotateWebhook: async (url, actor) => {
      const publicUrl = address(url)
      return inTurn(() => rotateWebhook(deps, publicUrl, actor))
    },
    retireWebhook: (id, actor) => inTurn(() => retireWebhook(deps, id, actor)),
    checkWebhooks: () => inTurn(() => checkWebhooks(deps)),
    webhookTraffic: inbox.traffic,
  }
}
