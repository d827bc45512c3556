/** An order with its page of keys, served at an address as the service serves it. */
import { Router } from 'express'
import { onTestFinished } from 'vitest'
import { createHttpServer } from '../../src/http/server.ts'
import { newPage, pathOfOrder } from '../../src/keys/key-pages.ts'
import type { PageShop } from '../../src/keys/page.ts'
import { keysRouter } from '../../src/keys/router.ts'
import { openTestApp, type TestAppOptions } from './test-app.ts'

export interface KeyPageOptions extends TestAppOptions {
  quantity?: number
  shop?: Partial<PageShop>
  /** The proxies whose `X-Forwarded-For` is believed. */
  proxies?: string[]
}

const form = 'application/x-www-form-urlencoded'

export async function openKeyPage({ quantity = 2, shop, proxies = [], ...options }: KeyPageOptions = {}) {
  const app = await openTestApp(options)
  const { db, ordering } = app
  const { vault, now, newId, monotonic } = ordering
  const counted: string[] = []
  const logged: string[] = []
  const note = (event: string, fields?: object) => void logged.push(JSON.stringify({ event, ...fields }))
  const ofShop = {
    name: 'Nordic <Keys>',
    url: 'https://shop.example',
    contact: null,
    language: 'en',
    redeem: [],
    ...shop,
  }
  const pages = { db, vault, now, newId, pageDays: 365, sendsLinks: () => true }
  const server = createHttpServer({
    webhooks: Router().use(keysRouter({ ...pages, monotonic, shopOf: () => ofShop })),
    proxies,
    log: { ...ordering.log, info: note, warn: note, error: note },
    newId,
    monotonic,
    count: (route, status) => counted.push(`${route} ${status}`),
  })
  const { port } = await server.listen('127.0.0.1', 0)
  onTestFinished(server.close)
  const origin = `http://127.0.0.1:${port}`
  /** Takes an order, and gives it its page. */
  const order = async (reference: string) => {
    const orderId = await app.buy(reference, { quantity })
    await db.commit([newPage({ vault, now }, orderId)])
    const path = (await pathOfOrder({ db, vault }, orderId)) ?? ''
    return { orderId, url: `${origin}${path}`, token: path.slice('/k/'.length) }
  }
  const first = await order('1001')
  const call = async (
    method: string,
    address = first.url,
    init: { body?: string; headers?: Record<string, string> } = {},
  ) => {
    const answer = await fetch(address, {
      headers: init.body === undefined ? {} : { 'content-type': form },
      ...init,
      method,
    })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  /** Clicks on "Show the key" of a line. */
  const open = (line = '1', address = first.url) =>
    call('POST', address, { body: new URLSearchParams({ line }).toString() })
  return {
    app,
    pages,
    port,
    ...first,
    order,
    call,
    open,
    logged,
    counted,
    keys: () => [...app.shop.keys().values()].flat(),
  }
}
