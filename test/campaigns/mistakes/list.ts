/**
 * Seeded mistakes: what a proof of the money path must be able to find.
 *
 * Each is an edit of the program's text, made while the module is loaded; the program itself has no switches for them.
 * `find` must stand in its file exactly once, so that a mistake which the code has outgrown fails loudly.
 */

export interface Edit {
  /** Path under `src/`. */
  file: string
  find: string
  replace: string
}

export interface Mistake {
  name: string
  /** What the program then does wrong. */
  does: string
  /** What sells where it is looked for. Default: a backend. */
  store?: 'backend' | 'woocommerce' | 'shopify'
  /** The test file that finds it. Default: the simulation does. */
  foundBy?: string
  /** The title of the test in it that finds the mistake, so that no other one runs. Default: all of them, until one fails. */
  title?: string
  /** The figure of the simulation that shows it. Default: any. */
  figure?: 'beyondEntitlement' | 'stuck'
  /** Where the simulation begins: few seeds further on it is found. Default: at the first one. */
  seed?: number
  /** What that test needs. Default: nothing. */
  needs?: 'postgres'
  edits: Edit[]
}

export const mistakes: readonly Mistake[] = [
  {
    name: 'random-key',
    does: 'draws an idempotency key for each attempt, so that the supplier cannot recognise a repeat',
    edits: [
      {
        file: 'ordering/send.ts',
        find: 'idempotencyKey: purchase.idempotencyKey,',
        replace: 'idempotencyKey: ordering.newId(),',
      },
    ],
  },
  {
    name: 'server-error-is-failure',
    does: 'takes a 5xx for a proof that nothing was charged',
    seed: 179,
    edits: [
      {
        file: 'supplier/classify.ts',
        find: 'if (!succeeded && (status < 400 || status > 499)) {',
        replace: `if (status >= 500) {
    return { outcome: 'rejected', reason: 'other', code: error?.code ?? '', message: '', evidence: seen }
  }
  if (!succeeded && (status < 400 || status > 499)) {`,
      },
    ],
  },
  {
    name: 'trusted-rejection',
    does: 'takes the refusal of a repeat for a proof that the first attempt was not charged',
    seed: 33,
    edits: [
      {
        file: 'domain/purchase.ts',
        find: "return { next: 'unknown', set }",
        replace: `if (refused) return { next: 'rejected', set: { lastClass }, effects: ['notify_failed'] }
    return { next: 'unknown', set }`,
      },
    ],
  },
  {
    name: 'no-settle',
    does: 'believes that an order is absent while its request may still be on the way',
    seed: 38,
    edits: [
      {
        file: 'domain/not-found-proof.ts',
        find: 'sentAt + deadlineMs + settleMs + listLagMs',
        replace: 'sentAt + listLagMs',
      },
    ],
  },
  {
    name: 'intent-not-persisted',
    does: 'sends a request before the intent to send it is stored',
    edits: [
      {
        file: 'ordering/send.ts',
        find: 'await ordering.db.commit(move.changes)',
        replace: `const stored = ordering.db.commit(move.changes)
    if (move.moved?.decision.next === 'sending') stored.catch(() => {})
    else await stored`,
      },
    ],
  },
  {
    name: 'single-look-up',
    does: 'believes a single look-up that an order is absent, however early it was made',
    seed: 27,
    edits: [
      {
        file: 'ordering/refresh.ts',
        find: "if (verdict.proof === 'absent') return",
        replace: 'if (verdict) return',
      },
    ],
  },
  {
    name: 'short-lease',
    does: 'holds a purchase for less time than its request may take',
    edits: [
      {
        file: 'ordering/context.ts',
        find: 'dialect.settleSeconds * 2_000',
        replace: 'dialect.settleSeconds * 100',
      },
      {
        file: 'ordering/send.ts',
        find: 'ordering.monotonic() + deadlineMs(ordering) < held.leaseEndMonotonic',
        replace: 'ordering.monotonic() < held.leaseEndMonotonic',
      },
    ],
  },
  {
    name: 'key-reused-after-rejection',
    does: 'sends a key again that was answered with a rejection, and gets the same answer each time',
    seed: 13,
    edits: [
      {
        file: 'domain/purchase.ts',
        find: "return { next: 'rejected', set: { lastClass: 'refused' }, effects: [{ plan: answer.reason, notBefore }] }",
        replace: "return { next: 'waiting', set: { holdReason: answer.reason, notBefore, lastClass: 'refused' } }",
      },
    ],
  },
  {
    name: 'cancelled-replayed',
    does: 'repeats a request although the store has cancelled',
    edits: [
      {
        file: 'domain/purchase.ts',
        find: `if (facts.cancelRequestedAt === null) return undefined
    return { next: 'cancelled', effects: failureNotice(facts) }`,
        replace: 'return undefined',
      },
      {
        file: 'ordering/send.ts',
        find: "...assertEntitled(purchase, purchase.state === 'unknown' ? 0 : readSince(ordering)),",
        replace: '',
      },
    ],
  },
  {
    name: 'cancelled-keys-handed-over',
    does: 'hands keys over although the store has cancelled',
    seed: 27,
    edits: [
      {
        file: 'domain/purchase.ts',
        find: 'if (!allCame(facts, input) || facts.cancelRequestedAt === null) return undefined',
        replace: 'if (facts.quantity > 0) return undefined',
      },
      {
        file: 'storage/licence-keys.ts',
        find: 'or(isNull(purchases.cancelRequestedAt), sql`',
        replace: 'or(sql`1 = 1`, sql`',
      },
      {
        file: 'ordering/fulfil.ts',
        find: "...(row.sentUpdate ? [] : [assertSettledAndPaid(row.orderId ?? '', handsOver, 0)]),",
        replace: '',
      },
    ],
  },
  {
    name: 'refused-hand-over-has-begun',
    does: 'takes keys for begun when the store refused the connection, so that a cancellation comes too late',
    seed: 139,
    edits: [
      {
        file: 'ordering/fulfil.ts',
        find: 'if (leftNothing) await noteUnsent(fulfilment, outgoing)',
        replace: '',
      },
    ],
  },
  {
    name: 'cancellations-freeze',
    does: 'freezes buying for reviews that cancellations caused',
    seed: 4,
    edits: [
      {
        file: 'domain/purchase.ts',
        find: "['completed_and_cancelled', 'cancelled_before_hand_over']",
        replace: "['none of them']",
      },
    ],
  },
  {
    name: 'restored-without-cancellation',
    does: 'puts a purchase back after a restore without the cancellation of its order, and does not ask for it when it settles',
    // What the order entitles to ends it as well, but for what an operator bought in spite of that.
    foundBy: 'test/backup/restore-cases.test.ts',
    title:
      'and that the store cancels while another line of its order is reattached is reported as one that does not come',
    edits: [
      {
        file: 'ordering/reattach.ts',
        find: 'cancelRequestedAt: live?.cancelRequestedAt ?? null,',
        replace: 'cancelRequestedAt: null,',
      },
      {
        file: 'ordering/settle.ts',
        find: "if (row.readAt === ALWAYS_FRESH && (step?.step === 'shop_ends' || step?.step === 'shop_cancels'))",
        replace: "if (step?.step === 'grow')",
      },
      {
        file: 'ordering/reattach.ts',
        find: '...(live ? [] : [carryCancellation(id)]),',
        replace: '',
      },
    ],
  },
  {
    name: 'keys-handed-over-twice',
    does: 'repeats a callback under another id, so that the store cannot recognise a repeat',
    seed: 22,
    edits: [
      {
        file: 'ordering/fulfil.ts',
        find: 'const attempt = { id: row.id, at: row.createdAt }',
        replace: 'const attempt = { id: fulfilment.newId(), at: row.createdAt }',
      },
    ],
  },
  {
    name: 'acknowledged-before-commit',
    does: 'answers a delivery before the commit that stores it',
    seed: 39,
    edits: [
      {
        file: 'inbox/receive.ts',
        find: 'const [stored] = await db.commit([',
        replace: `const [stored] = [1]
    void db.commit([`,
      },
    ],
  },
  {
    name: 'short-page-ends',
    does: 'takes a page with fewer orders than were asked for to be the end of the list',
    seed: 483,
    edits: [
      {
        file: 'ordering/scan.ts',
        find: 'if (isCutOff || !(page.more ?? rows > 0)) {',
        replace: `if (isCutOff || !(page.more ?? rows >= ordering.dialect.paging.limitMax)) {
      counted = undefined`,
      },
    ],
  },
  {
    name: 'empty-filter-proves',
    does: 'takes an empty answer of a filter by reference that has never found an order to be a proof of absence',
    seed: 27,
    edits: [
      {
        file: 'ordering/scan.ts',
        find: 'if (orders?.length !== 0) return orders',
        replace: 'if (orders) return orders',
      },
    ],
  },
  {
    name: 'refusal-beats-order',
    does: 'takes a refusal for a proof that nothing was charged although it carries the id of an order',
    foundBy: 'test/supplier/refusal.test.ts',
    edits: [
      {
        file: 'supplier/classify.ts',
        find: 'if (orderId !== undefined && orderId !== requestId) seen',
        replace: 'if (orderId !== undefined && orderId !== requestId && !error) seen',
      },
    ],
  },
  {
    name: 'second-order-ignored',
    does: 'overlooks a second order for a part that has one',
    foundBy: 'test/ordering/scan.test.ts',
    edits: [
      {
        file: 'domain/purchase.ts',
        find: 'if (several.length === 0) return undefined',
        replace: 'if (several.length >= 0) return undefined',
      },
    ],
  },
  {
    name: 'whole-quantity-again',
    does: 'buys the whole quantity again for a part that was written off after the store had some of its keys',
    seed: 39,
    edits: [
      {
        file: 'ordering/advance.ts',
        find: 'const open = purchase.quantity - unitsLeft({ keys })',
        replace: 'const open = purchase.quantity',
      },
    ],
  },
  {
    name: 'losses-leave-the-caps',
    does: 'takes the money of what was written off, or failed without a refund, out of the spend caps',
    edits: [
      {
        file: 'domain/purchase.ts',
        find: "return next === 'cancelled' && (row === 'cancelled_before_sending' || row === 'shop_ended')",
        replace: "return next === 'cancelled'",
      },
      {
        file: 'domain/purchase.ts',
        find: 'return (set.refundedAt ?? refundedAt) !== null',
        replace: 'return true',
      },
    ],
  },
  {
    name: 'note-not-looked-for',
    does: 'sends the customer of a shop licence keys by note without a look at the notes that it has sent',
    store: 'woocommerce',
    seed: 17,
    edits: [
      {
        file: 'stores/woocommerce/hand-over.ts',
        find: 'sent.some(({ note }) => noteHas(note, key, link))',
        replace: 'false',
      },
    ],
  },
  {
    name: 'woo-link-left-out',
    does: 'completes an order of WooCommerce whose mail has no link to the page of keys, and no key either',
    foundBy: 'test/stores/woocommerce-link.test.ts',
    edits: [
      {
        file: 'stores/woocommerce/hand-over.ts',
        find: 'filter((key) => !isMark(key)), ...(link === undefined ? [] : [link])].join',
        replace: "filter((key) => !isMark(key)), ...(link === undefined ? [] : [''])].join",
      },
      {
        file: 'stores/woocommerce/hand-over.ts',
        find: 'isMark(key) ? link !== undefined && hasKey(text, link) : hasKey(text, key)',
        replace: 'isMark(key) || hasKey(text, key)',
      },
      {
        file: 'stores/woocommerce/hand-over.ts',
        find: ' || (shop.link !== undefined && !hasKey(left, shop.link))',
        replace: '',
      },
    ],
  },
  {
    name: 'link-of-a-lost-database',
    does: 'leaves a customer of WooCommerce the link to a page that a lost database has taken away',
    foundBy: 'test/stores/woocommerce-link.test.ts',
    edits: [
      {
        file: 'stores/woocommerce/hand-over.ts',
        find: 'isMark(key) ? link !== undefined && hasKey(text, link) : hasKey(text, key)',
        replace: 'isMark(key) ? linkIn(text) !== undefined : hasKey(text, key)',
      },
    ],
  },
  {
    name: 'late-twice',
    does: 'writes to the customer of WooCommerce again that keys are late, where the answer to the first note was lost',
    foundBy: 'test/ordering/late.test.ts',
    edits: [
      {
        file: 'stores/woocommerce/hand-over.ts',
        find: "customer_note && note.startsWith(late ?? '')",
        replace: 'customer_note && note === late',
      },
    ],
  },
  {
    name: 'completed-twice',
    does: 'completes an order of WooCommerce again that its merchant has opened, so that the mail with its keys comes twice',
    foundBy: 'test/stores/woocommerce-hand-over.test.ts',
    edits: [
      {
        file: 'stores/woocommerce/hand-over.ts',
        find: "if (mayComplete && (order.status === 'completed' || isMailed(order))) return CONFIRMED",
        replace: "if (mayComplete && order.status === 'completed') return CONFIRMED",
      },
    ],
  },
  {
    name: 'mailed-keys-noted',
    does: 'brings keys of a completed order again with the note about a later one, although its mail has brought them',
    foundBy: 'test/campaigns/shop/one-mail.test.ts',
    edits: [
      {
        file: 'stores/woocommerce/hand-over.ts',
        find: "const waiting = order.status === 'completed' ? [] : waitingKeys(shop, order)",
        replace: 'const waiting = waitingKeys(shop, order)',
      },
    ],
  },
  {
    name: 'replacement-without-room',
    does: 'counts a key in place of one that does not work as a further unit of its line, so that it is never bought',
    figure: 'stuck',
    seed: 5,
    edits: [
      {
        file: 'storage/entitlements.ts',
        find: 'select count(distinct r.part) from purchases r where r.line_id = purchases.line_id and r.claim is not null)',
        replace: 'select 0)',
      },
    ],
  },
  {
    name: 'claim-decided-twice',
    does: 'lets a claim be decided a second time, so that two keys come in place of one',
    seed: 5,
    edits: [
      { file: 'ordering/claims.ts', find: 'if (claim.outcome !== null) {', replace: 'if (claim.number < 0) {' },
      {
        file: 'storage/claims.ts',
        find: "changeSeen(1, claims, ['id'], isNull(claims.endedAt))",
        replace: "changeSeen(1, claims, ['id'])",
      },
    ],
  },
  {
    name: 'unpaid-order-bought',
    does: 'buys what an order of a shop has that waits for its money',
    store: 'woocommerce',
    edits: [
      {
        file: 'stores/woocommerce/orders.ts',
        find: "'checkout-draft'].includes(status))\n    return { standing: 'unpaid'",
        replace: "'checkout-draft'].includes(status))\n    return { standing: 'paid'",
      },
      {
        file: 'stores/woocommerce/orders.ts',
        find: 'fullyPaid: order.date_paid_gmt !== null',
        replace: 'fullyPaid: true',
      },
      {
        file: 'ordering/shop-orders.ts',
        find: "if (read.standing !== 'paid' || paidAt === null)",
        replace: "if (read.standing !== 'paid')",
      },
      {
        file: 'ordering/shop-orders.ts',
        find: 'Math.min(placedAt ?? paidAt, paidAt) <',
        replace: '(placedAt ?? paidAt ?? ordering.now()) <',
      },
    ],
  },
  {
    name: 'refunded-units-bought',
    does: 'buys as many units as were planned, also those that the shop has refunded since',
    store: 'woocommerce',
    figure: 'beyondEntitlement',
    seed: 8,
    edits: [
      {
        file: 'domain/entitlement.ts',
        find: 'lessen(order, line, own, back + over + ungranted)',
        replace: 'lessen(order, line, own, back + ungranted)',
      },
      {
        file: 'storage/entitlements.ts',
        find: 'const fitsUnits = sql`(purchases.quantity + ',
        replace: 'const fitsUnits = sql`(-1000 + ',
      },
    ],
  },
  {
    name: 'held-order-bought',
    does: 'buys for an order that the shop holds, or whose payment failed, after it was taken',
    store: 'woocommerce',
    figure: 'beyondEntitlement',
    edits: [
      {
        file: 'domain/entitlement.ts',
        find: 'if (!isReview && !isLeaving && part.holdReason !== reason)',
        replace: 'if (!isReview && !isLeaving && part.quantity === 0)',
      },
      {
        file: 'ordering/guards.ts',
        find: "if (order.standing === 'paid' && order.isSettled && order.isWithin) return undefined",
        replace: 'if (order.isSettled && order.isWithin) return undefined',
      },
      {
        file: 'storage/entitlements.ts',
        find: " = 'paid'\n          or ",
        replace: " <> ''\n          or ",
      },
    ],
  },
  {
    name: 'keys-leave-unread',
    does: 'gives keys to the customer of a shop without a look at how the order stands when they leave',
    store: 'woocommerce',
    figure: 'beyondEntitlement',
    seed: 73,
    edits: [
      {
        file: 'stores/woocommerce/hand-over.ts',
        find: 'if (hasRoom(others.length)) return undefined',
        replace: 'if (had.length + keys.length + units > 0) return undefined',
      },
    ],
  },
  {
    name: 'keys-put-on-unread',
    does: 'puts keys on a Shopify order without a look at how it stands when they leave',
    store: 'shopify',
    figure: 'beyondEntitlement',
    seed: 52,
    edits: [
      {
        file: 'stores/shopify/hand-over.ts',
        find: 'const isNew = fresh.length === keys.length',
        replace: 'const isNew = fresh.length > keys.length',
      },
    ],
  },
  {
    name: 'growth-not-planned',
    does: 'plans nothing for units that a line gained and that are paid',
    store: 'shopify',
    figure: 'stuck',
    edits: [
      {
        file: 'domain/entitlement.ts',
        find: "order.steps.push({ step: 'grow', line, units: open - kept })",
        replace: '',
      },
    ],
  },
  {
    name: 'hold-not-released',
    does: 'leaves a purchase held whose order is paid again',
    store: 'woocommerce',
    figure: 'stuck',
    seed: 12,
    edits: [
      {
        file: 'domain/entitlement.ts',
        find: 'isStandingHold(part.holdReason)',
        replace: 'isStandingHold(null)',
      },
    ],
  },
  {
    name: 'second-failure-unsaid',
    does: 'leaves a remark on an order about the first units that will not come, and none about others: the one that closes the order names none',
    store: 'woocommerce',
    figure: 'stuck',
    seed: 50,
    edits: [
      {
        file: 'stores/woocommerce/hand-over.ts',
        find: 'note.includes(mark))) return CONFIRMED',
        replace: "note.includes(words.includes(' will not come: ') ? ' will not come: ' : mark))) return CONFIRMED",
      },
    ],
  },
  {
    name: 'wish-followed-again',
    does: 'plans a part once more for the same wish whenever it has ended',
    store: 'shopify',
    seed: 100,
    edits: [
      {
        file: 'domain/entitlement.ts',
        find: 'part.plannedRevision < order.wishRevision)',
        replace: 'order.wishRevision > 0)',
      },
    ],
  },
  {
    name: 'keys-not-looked-for',
    does: 'puts licence keys on a Shopify order without a look at those that it has',
    store: 'shopify',
    edits: [
      {
        file: 'stores/shopify/hand-over.ts',
        find: 'const fresh = missingKeys(on, keys, line.',
        replace: 'const fresh = tries === 1 ? keys : missingKeys(on, keys, line.',
      },
    ],
  },
  {
    name: 'late-keys-unsaid',
    does: 'leaves no word on a Shopify order that its keys came after its mail',
    foundBy: 'test/stores/shopify-shop.test.ts',
    edits: [
      {
        file: 'stores/shopify/hand-over.ts',
        find: '  if (isLate) {\n    const noted',
        replace: '  if (isLate && keys.length === 0) {\n    const noted',
      },
    ],
  },
  {
    name: 'shopify-link-left-out',
    does: 'fulfils an order of Shopify without the link by which its customer comes to the keys',
    foundBy: 'test/shops/story.test.ts',
    title: 'of the kind shopify has every key once',
    edits: [
      {
        file: 'stores/shopify/hand-over.ts',
        find: '      ...(link && { trackingInfo: link }),\n',
        replace: '',
      },
    ],
  },
  {
    name: 'link-beside-keys-left-out',
    does: 'gives a customer of a WooCommerce shop the keys alone, where the store says the link as well',
    foundBy: 'test/shops/story.test.ts',
    title: 'of the kind woocommerce has every key once',
    edits: [
      {
        file: 'stores/woocommerce/hand-over.ts',
        find: '...(by !== undefined && { link: keysUrl })',
        replace: '',
      },
    ],
  },
  {
    name: 'unanswered-keys-uncounted',
    does: 'forgets the keys that an unanswered hand-over has brought to a line, where a unit of it is refunded',
    foundBy: 'test/stores/shopify-fulfilment.test.ts',
    title: 'where a unit is refunded while neither of two hand-overs was answered',
    edits: [
      {
        file: 'stores/shopify/hand-over.ts',
        find: 'deliveredNow + unanswered.length - missingKeys(on, unanswered).length',
        replace: 'deliveredNow',
      },
    ],
  },
  {
    name: 'surplus-of-another-line',
    does: 'names the first line of an order where units of another one were bought and are not ordered any more',
    foundBy: 'test/ordering/settle.test.ts',
    edits: [
      {
        file: 'ordering/settle.ts',
        find: 'const { line, units } = notice\n',
        replace: 'const { units } = notice\n    const line = lines[0]?.line ?? notice.line\n',
      },
    ],
  },
  {
    name: 'refreshed-offer-publishes-nothing',
    does: 'wakes no publisher when an offer was refreshed',
    foundBy: 'test/runtime.test.ts',
    edits: [{ file: 'runtime.ts', find: "      wake('publish')\n", replace: '' }],
  },
  {
    name: 'risen-balance-releases-nothing',
    does: 'keeps the purchases held that waited for a balance which rose',
    foundBy: 'test/runtime.test.ts',
    edits: [
      {
        file: 'reconciliation/balance.ts',
        find: "if (!before || reading.amountMinor > before.amountMinor) await releaseHeld(ordering, 'balance')",
        replace: '',
      },
    ],
  },
  {
    name: 'fallen-balance-starts-no-sweep',
    does: 'looks for no order behind a fall of the balance that nothing explains',
    foundBy: 'test/runtime.test.ts',
    edits: [
      {
        file: 'runtime.ts',
        find: "sweeps.behind(await checkBalance(ordering, catalogue), 'balance')",
        replace: 'void (await checkBalance(ordering, catalogue))',
      },
    ],
  },
  {
    name: 'worker-not-fenced',
    does: 'lets a worker store what it likes after another process has taken its lease',
    foundBy: 'test/processes.test.ts',
    title: 'a worker whose lease another process has taken writes nothing more, and ends',
    needs: 'postgres',
    edits: [{ file: 'processes/processes.ts', find: '      lease.fence()\n', replace: '' }],
  },
  {
    name: 'lease-outlives-its-renewal',
    does: 'takes the lease of the worker for longer than the server does',
    foundBy: 'test/storage/lease.test.ts',
    title: 'is over for a holder that cannot renew it before it is over for all others',
    needs: 'postgres',
    edits: [
      {
        file: 'storage/postgres/lease.ts',
        find: 'let endsAt = askedAt + LEASE_MS - MARGIN_MS',
        replace: 'let endsAt = askedAt + LEASE_MS + MARGIN_MS',
      },
      {
        file: 'storage/postgres/lease.ts',
        find: '      endsAt = at + LEASE_MS - MARGIN_MS',
        replace: '      endsAt = at + LEASE_MS + MARGIN_MS',
      },
    ],
  },
  {
    name: 'start-not-compared',
    does: "buys after a start before the supplier's newest orders were compared with the database",
    foundBy: 'test/backup/restore-cases.test.ts',
    edits: [
      {
        file: 'reconciliation/restore.ts',
        find: '  await db.commit(await heldFromStart(parts))\n',
        replace: '',
      },
    ],
  },
  {
    name: 'worker-not-compared',
    does: "buys after the lease was taken before the supplier's newest orders were compared with the database",
    foundBy: 'test/campaigns/rollbacks.test.ts',
    needs: 'postgres',
    edits: [
      {
        file: 'reconciliation/restore.ts',
        find: 'await db.commit([...noted, ...(await heldFromStart(parts))])',
        replace: 'await db.commit(noted)',
      },
    ],
  },
  {
    name: 'rows-not-counted',
    does: 'commits a guarded change on PostgreSQL, however many rows it has touched',
    foundBy: 'test/storage/postgres.test.ts',
    needs: 'postgres',
    edits: [
      { file: 'storage/postgres/postgres.ts', find: "rows === 'any' ? text :", replace: 'rows !== undefined ? text :' },
    ],
  },
  {
    name: 'unknown-commit-repeated',
    does: 'runs a transaction again whose COMMIT was not answered, and reads nothing before',
    foundBy: 'test/storage/postgres.test.ts',
    title: 'at COMMIT is unknown to who asked, and a process that keeps nothing in mind goes on',
    needs: 'postgres',
    edits: [
      {
        file: 'storage/postgres/postgres.ts',
        find: "tags.length >= head.length + steps.length) return { kind: 'unknown', error }",
        replace: "tags.length >= head.length + steps.length) return { kind: 'again', error }",
      },
    ],
  },
  {
    name: 'two-workers',
    does: 'takes the lease of the worker while another process has it',
    foundBy: 'test/storage/lease.test.ts',
    title: 'has one holder, and the next one begins as soon as it is given back',
    needs: 'postgres',
    edits: [
      { file: 'storage/postgres/lease.ts', find: 'running.length > 0 ? [] :', replace: 'running.length > 1 ? [] :' },
      {
        file: 'storage/postgres/lease.ts',
        find: '\n  where held.ends_at',
        replace: '\n  where 0',
      },
    ],
  },
]

/** Edits under which all that is promised holds as well. */
export const variants: readonly Mistake[] = [
  {
    name: 'read-committed',
    does: 'runs each transaction at READ COMMITTED: what a commit means is in its guarded changes',
    needs: 'postgres',
    edits: [{ file: 'storage/postgres/postgres.ts', find: 'level serializable', replace: 'level read committed' }],
  },
]

/** @throws Error that names all mistakes when there is none of that name */
export function mistakeNamed(name: string): Mistake {
  const found = [...mistakes, ...variants].find((mistake) => mistake.name === name)
  if (found) return found
  throw new Error(`there is no mistake ${name}; there are ${mistakes.map((mistake) => mistake.name).join(', ')}`)
}

/** @throws Error when the text that is to be replaced does not stand there exactly once */
export function withEdit(text: string, { file, find, replace }: Edit): string {
  const [before = '', after, ...more] = text.split(find)
  if (after !== undefined && more.length === 0) return `${before}${replace}${after}`
  throw new Error(`src/${file} has this ${after === undefined ? 'nowhere' : 'more than once'}: ${find}`)
}
