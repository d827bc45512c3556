/** A shop of Shopify beside a database that is put back: what its merchant changes between backup and loss is lost there. */
import { Failure } from '../../src/errors.ts'
import { alertsAbout } from './alerts-about.ts'
import { shopifyThatSells } from './changing-shop.ts'
import { openRestoreWorld } from './restore-world.ts'
import { passingTime } from './shop-app.ts'
import { besideShopify, SHOP } from './shopify-app.ts'
import type { TestAppOptions } from './test-app.ts'

const MINUTE = 60_000

export async function openRestoredShop({
  delayMinutes = 0,
  ...options
}: TestAppOptions & { delayMinutes?: number } = {}) {
  const { shop, beside } = await besideShopify({ delayMinutes })
  const world = await openRestoreWorld({ ...options, beside })
  const { app } = world
  const deeds = await shopifyThatSells(app, shop)
  const { settle } = passingTime(app)
  return {
    ...world,
    ...deeds,
    shop,
    alertsAbout: (reference: string) => alertsAbout(app.db, SHOP, reference),
    /** Lets time pass in steps of a minute, in which everything that is due runs, reattaching included. */
    pass: async (ms: number): Promise<void> => {
      for (const end = app.now() + ms; app.now() < end; ) {
        app.move(Math.min(MINUTE, end - app.now()))
        await app.runtime.reattachOrders().catch((error: unknown) => {
          if (!(error instanceof Failure)) throw error
        })
        await settle()
      }
    },
  }
}
