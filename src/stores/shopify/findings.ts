import { z } from 'zod'
import { counted, countText } from '../../domain/figures.ts'
import { plain } from '../../domain/text-layout.ts'
import { clockFindings, currencyFinding, doubtful, failed, failedCall, sound } from '../findings.ts'
import type { StoreFinding } from '../store.ts'
import { locationIn, readLocations, servesOnline } from './catalogue.ts'
import { ask, call, type Shop, type ShopSettings } from './client.ts'
import * as documents from './documents.ts'
import { PUBLISHING_SCOPE, SCOPES } from './kind.ts'
import { APP_NAMESPACE, listedOrders, numberOf } from './orders.ts'

const ORDERS_SCOPE = 'write_orders'
const LOCATIONS_SCOPE = 'read_locations'

/** The facts in the first answer of a shop. `app`: the number of the app. */
export const shopFacts = z
  .object({
    shop: z.object({ currencyCode: z.string() }),
    currentAppInstallation: z.object({
      app: z.object({ id: z.string().transform((id) => numberOf('App', id)) }),
      accessScopes: z.array(z.object({ handle: z.string() })),
    }),
  })
  .transform(({ shop: { currencyCode }, currentAppInstallation: { app, accessScopes } }) => ({
    currency: currencyCode,
    app: app.id,
    scopes: accessScopes.map(({ handle }) => handle),
  }))

/** Returns the access scopes that the app must be granted in the shop. A scope to write includes the scope to read. */
export const scopesFor = (create: ShopSettings['create']): string[] =>
  create === 'publish' ? [...SCOPES, PUBLISHING_SCOPE] : SCOPES

/** Returns the access scopes that are missing. @param granted the scopes that the app was granted */
export const missingScopes = (granted: readonly string[], create: ShopSettings['create']): string[] =>
  scopesFor(create).filter((scope) => !granted.includes(scope) && !granted.includes(scope.replace(/^read_/, 'write_')))

/** Checks all that the adapter needs of a shop. The checks only read. */
export async function tryShop(shop: Shop): Promise<StoreFinding[]> {
  const { now, apiVersion, settings } = shop
  const { currency, create, metafieldNamespace, deliver } = settings
  const answer = await call(shop, documents.shop)
  const clock = clockFindings(now(), answer.answeredAt)
  if (!answer.ok) return [failedCall('connection', answer), ...clock]
  const facts = shopFacts.safeParse(answer.data).data
  if (!facts) {
    const detail = 'what answers there is no shop of Shopify'
    return [failed('connection', detail, 'Compare the address of the shop.'), ...clock]
  }
  const missing = missingScopes(facts.scopes, create)
  return [
    sound('connection', 'it accepted the credentials'),
    currencyFinding(facts.currency, currency),
    ...clock,
    versionFinding(answer.version, apiVersion),
    scopesFinding(missing, create),
    ...(missing.includes(ORDERS_SCOPE) ? [] : await ordersFindings(shop)),
    // Locations cannot be read without this scope. `scopesFinding` names the missing scope already.
    ...(missing.includes(LOCATIONS_SCOPE) ? [] : [await locationFinding(shop)]),
    deliver === 'link' ? LINKED : keysFinding(facts.app, metafieldNamespace),
  ]
}

function versionFinding(version: string | null, apiVersion: string): StoreFinding {
  if (version === apiVersion) return sound('version', `it answers by version ${apiVersion} of its API`)
  const detail =
    version === null
      ? 'it does not say by which version of its API it answers'
      : `it answers by another version of its API than ${apiVersion}, which is configured`
  return doubtful(
    'version',
    detail,
    'Configure an `apiVersion` that Shopify supports, which may need a newer Quayside.',
  )
}

function scopesFinding(missing: string[], create: ShopSettings['create']): StoreFinding {
  if (missing.length === 0) {
    return sound('permissions', `the app has the access scopes ${scopesFor(create).join(', ')}`)
  }
  return failed(
    'permissions',
    `the app lacks ${missing.length === 1 ? 'the access scope' : 'the access scopes'} ${missing.join(', ')}`,
    'Release a version of the app that has them, and let the shop accept it. A service that runs is restarted then.',
  )
}

/** Tries to read orders. The access scope for orders is not enough: an app must also state why it reads customer data. */
async function ordersFindings(shop: Shop): Promise<StoreFinding[]> {
  const query = `updated_at:>='${new Date(shop.now()).toISOString()}'`
  const answer = await call(shop, documents.changedOrders, { query, after: null })
  if (answer.ok) return [sound('permissions', 'the app may read orders'), ...(await paymentFindings(shop))]
  if (answer.failure.outcome !== 'refused' || answer.failure.status !== 403) return [failedCall('permissions', answer)]
  const detail = 'the app may read no orders, although it has the access scope'
  const fix = 'Ask for protected customer data of level 1 in the settings of the app: none of the optional fields.'
  return [failed('permissions', detail, fix)]
}

/** Orders that wait for money, by their financial status. The payment settings that make them wait cannot be read. */
const AWAITED = {
  authorized: {
    are: 'authorised and not captured',
    next: 'each is bought once it is captured',
    fix: 'In the shop, see Settings, Payments: where payments are captured when an order is fulfilled, Shopify and Quayside wait for each other. Let them be captured at checkout, or capture them.',
  },
  partially_paid: {
    are: 'paid in part, as by a deposit',
    next: 'each waits for the rest',
    fix: 'Collect the rest in the shop, where it does not come by itself.',
  },
}

async function paymentFindings(shop: Shop): Promise<StoreFinding[]> {
  const found: StoreFinding[] = []
  for (const [status, { are, next, fix }] of Object.entries(AWAITED)) {
    const query = `status:open financial_status:${status}`
    const read = await ask(shop, documents.changedOrders, { query, after: null }, listedOrders)
    if (read.outcome !== 'read') return [failed('payments', read.detail)]
    const { nodes, next: more } = read.value
    const [one] = nodes
    if (!one) continue
    const count = countText(nodes.length, more === null ? undefined : nodes.length)
    const detail = `open orders that are ${are}: ${count}, such as ${one.id}; ${next}`
    found.push(doubtful('payments', detail, fix))
  }
  if (found.length > 0) return found
  const detail =
    'no open order waits for a capture or for the rest of its money; whether the shop captures payments only when it fulfils cannot be read: see Settings, Payments'
  return [sound('payments', detail)]
}

async function locationFinding(shop: Shop): Promise<StoreFinding> {
  const { location: number, otherLocations } = shop.settings
  const fix =
    number === null
      ? 'In the shop, let a location fulfil online orders: Settings, Locations. Or configure another by its number, as `location`.'
      : 'Compare the number that is configured as `location` with that in the address of its page in the shop.'
  const read = await readLocations({ ...shop, canWait: true })
  if (read.outcome !== 'read') return failed('location', read.detail, fix)
  const location = locationIn(read.value, number)
  if (!location) {
    return failed(
      'location',
      number === null ? 'it has no location for online orders' : `it has no location ${number}`,
      fix,
    )
  }
  if (!servesOnline(location) || location.isFulfillmentService) {
    return doubtful('location', `the location ${number} serves no online orders`, fix)
  }
  const name = `${plain(location.name)} (${numberOf('Location', location.id)})`
  const others = read.value.filter((one) => one.id !== location.id && servesOnline(one)).length
  const count = counted(others, 'other location')
  const rest = {
    warn: `; the shop sells what ${count} ${others === 1 ? 'has' : 'have'}, too`,
    own: `; at ${count} for online orders it is set to 0`,
  }
  return sound('location', `stock is written at the location ${name}${others === 0 ? '' : rest[otherLocations]}`)
}

/** Says where a template finds the keys of an order. @param app the number of the app */
function keysFinding(app: string | undefined, namespace: string | null): StoreFinding {
  const own = app === undefined ? APP_NAMESPACE : APP_NAMESPACE.replace(/^\$app:/, `app--${app}--`)
  const place = `metafields keys_1, keys_2 and so on, of the namespace ${namespace ?? own}`
  return sound('keys', `those that customers get in plain text are in the ${place}`)
}

const LINKED = sound('keys', 'customers get a link to them, as the tracking of their order')
