/** What people do with a listing. Each action is posted to the page of the listing, wherever the action is drawn. */

import { type Html, html } from '../domain/html.ts'
import { formatDecimal, parseDecimal } from '../domain/money.ts'
import { Failure } from '../errors.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { type ActionForm, act, hidden, reasonField, textField, textsIn } from './forms.ts'
import { type Action, byOperator, done, type Visit } from './page.ts'
import { money } from './words.ts'

export const listingPath = (store: string, id: string): string =>
  `/listings/${encodeURIComponent(store)}/${encodeURIComponent(id)}`

/** The page that follows an action which was not drawn on the page of the listing. */
const BACK = '/held-prices'

/** What the actions of one listing are drawn from. */
export interface Drawn {
  visit: Pick<Visit, 'form' | 'faults'>
  /** The id of the store; `name` is what people call it. */
  store: string
  name: string
  listing: AnswerOf<'viewStoreListing'>
  isOpen?: boolean
  /** Whether the action is drawn on the page of the held prices. */
  isAway?: boolean
}

const back = (isAway: boolean | undefined) => isAway === true && hidden('back', BACK)

/** Subtracts `other` from `one`, both as decimal text; undefined where one of them is no amount of the currency. */
export function lessThan(one: string, other: string, currency: string): string | undefined {
  const [from, less] = [parseDecimal(one, currency), parseDecimal(other, currency)]
  return from === undefined || less === undefined ? undefined : formatDecimal({ minor: from - less, currency })
}

/** Says how much a unit earns above its cost; undefined where price and cost are in different currencies. */
function marginOf(listing: AnswerOf<'viewStoreListing'>, price: string): string | undefined {
  const { explained } = listing
  const [cost] = explained?.steps ?? []
  if (!explained || cost?.step !== 'cost' || cost.amount === null || cost.currency !== explained.currency)
    return undefined
  const left = lessThan(price, cost.amount, explained.currency)
  return (
    left &&
    `Sales at ${money(price, explained.currency)} leave ${money(left, explained.currency)} a unit over the cost.`
  )
}

export function releaseAct({ visit, store, name, listing, isOpen, isAway }: Drawn): Html | undefined {
  const { wantedPrice: price, known, explained, id } = listing
  if (price === null || !known) return undefined
  const text = money(price, known.currency)
  const units = explained?.stock.stock
  return act({
    to: `${listingPath(store, id)}/release`,
    about:
      'Lets this one price pass. If cost, rate or rule has changed since you opened this page, nothing happens and you see the new price.',
    fields: html`${hidden('price', price)}${back(isAway)}${reasonField(visit, `release-${id}`)}`,
    effect: {
      Money: `Nothing is spent. ${marginOf(listing, price) ?? ''}`,
      Store: `${name} gets ${text}${units == null ? '' : ` and ${units} units`} within seconds.`,
      Undo: 'Not by a click. Set a fixed price for the SKU in the configuration.',
    },
    button: `Release ${text}`,
    isOpen: isOpen === true,
  })
}

/** The actions of a listing that are on its page at any time, by the last piece of their path. */
const actsOf = ({ visit, name, listing }: Drawn) =>
  ({
    ignore: {
      summary: `Ignore ${listing.known?.name ?? listing.id}…`,
      about: 'Leaves the listing alone from now on.',
      effect: {
        Money: 'Orders of it are not bought any more.',
        Store: `${name} keeps what it has, its stock too, until you change it there.`,
        Undo: 'Take the listing back at any time.',
      },
      fields: reasonField(visit, `ignore-${listing.id}`),
      button: 'Ignore this listing',
      stops: true,
    },
    unignore: {
      summary: 'Take it back…',
      about: 'Ends that it is ignored.',
      effect: {
        Money: 'Orders of it are bought again.',
        Store: `${name} gets its price and stock next.`,
        Undo: 'Ignore it again.',
      },
      button: 'Take this listing back',
    },
    retry: {
      summary: 'Push again…',
      about: `Pushes price and stock to ${name} at once, also while it is paused.`,
      effect: {
        Money: 'Nothing is spent.',
        Store: 'Gets what it should have now. A price that jumps stays held.',
        Undo: 'Not needed: it is what would be pushed anyway.',
      },
      button: 'Push this listing again',
    },
    link: {
      summary: listing.linkedBy === 'sku' ? 'Link it to an offer…' : 'Link it to another offer…',
      about: 'Names the offer of the supplier that is sold under this listing. Its SKU does not matter from then on.',
      effect: {
        Money: 'Later orders of it buy that offer.',
        Store: `${name} gets its price and stock within seconds; a price that jumps is held.`,
        Undo: 'Unlink it, or link it to another one.',
      },
      fields: textField(visit, {
        label: "The supplier's SKU, or its id of the product",
        name: 'offerSku',
        isRequired: true,
        at: 'link',
      }),
      button: 'Link this listing',
    },
    unlink: {
      summary: 'Unlink…',
      about: 'Takes the link back: the SKU counts again.',
      effect: {
        Money: 'Orders of it buy what the SKU names, or nothing.',
        Store: `Without an offer under the SKU, ${name} gets no stock.`,
        Undo: 'Link it again.',
      },
      button: 'Unlink this listing',
      stops: true,
    },
  }) satisfies Record<string, Omit<ActionForm, 'to'>>

export function listingAct(action: keyof ReturnType<typeof actsOf>, drawn: Drawn): Html {
  const form: Omit<ActionForm, 'to'> = actsOf(drawn)[action]
  const { store, listing, isAway } = drawn
  return act({
    ...form,
    to: `${listingPath(store, listing.id)}/${action}`,
    fields: html`${back(isAway)}${form.fields}`,
  })
}

const operation = (
  name: `${'release' | 'ignore' | 'unignore' | 'retry' | 'unlink'}Listing`,
  said: (visit: Visit) => [word: string, text: string],
  body?: (form: URLSearchParams) => object,
): Action =>
  byOperator(async (visit) => {
    const { store = '', variant = '' } = visit.path
    await visit.call(name, { path: { store, variant }, ...(body && { body: body(visit.form) }) })
    return done(...said(visit), followedBy(visit.form))
  })

const followedBy = (form: URLSearchParams) => (form.get('back') === BACK ? BACK : undefined)

const reasonIn = (form: URLSearchParams) => textsIn(form, 'reason')

export const listingActions: Record<string, Action> = {
  release: operation(
    'releaseListing',
    ({ path, form }) => ['Released', `${path.variant} gets the price ${form.get('price')} in its store next.`],
    (form) => ({ price: form.get('price') ?? '', ...reasonIn(form) }),
  ),
  ignore: operation(
    'ignoreListing',
    ({ path }) => ['Ignored', `${path.variant} is left alone in its store.`],
    reasonIn,
  ),
  unignore: operation('unignoreListing', ({ path }) => ['Taken back', `${path.variant} is pushed to its store next.`]),
  retry: operation('retryListing', ({ path }) => ['Pushed again', `${path.variant} goes to its store next.`]),
  unlink: operation('unlinkListing', ({ path }) => ['Unlinked', `The SKU of ${path.variant} counts again.`]),
  link: byOperator(async ({ call, path: { store = '', variant = '' }, form }) => {
    const offer = form.get('offerSku') ?? ''
    const path = { store, variant }
    // A person types a SKU or a product id. The text is tried as a SKU first.
    await call('linkListing', { path, body: { offerSku: offer } }).catch(async (error: unknown) => {
      if (!(error instanceof Failure) || error.code !== 'not_found') throw error
      await call('linkListing', { path, body: { productId: offer } }).catch((second: unknown) => {
        if (!(second instanceof Failure) || second.code !== 'not_found') throw second
        const message = `the supplier has no offer with the SKU or the product id ${offer}`
        throw new Failure('invalid', message, { fields: [{ field: 'offerSku', message }] })
      })
    })
    return done('Linked', `${variant} is sold from ${offer} now, and pushed to its store next.`, followedBy(form))
  }),
}
