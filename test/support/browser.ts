/** A real headless Chromium for the pages of the console: what its policy refuses, and what axe-core finds, fails the test. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { createLink, type PersonRole } from '../../src/access/sessions.ts'
import type { TokenContext } from '../../src/access/tokens.ts'
import { isNeeded } from './needs.ts'

const executablePath = process.env.CHROMIUM || '/usr/bin/chromium'

/** They take minutes: a run names what it needs, or where its browser is. */
export const hasBrowser = isNeeded('chromium') || Boolean(process.env.CHROMIUM)
export const skipText = 'QUAYSIDE_NEEDS=chromium runs it'

const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync'],
]

let shared: Promise<Browser> | undefined

/** One browser for the tests of a file. End it by `closeBrowser`. */
const browser = (): Promise<Browser> => {
  shared ??= chromium.launch({ executablePath, args: FLAGS })
  return shared
}

export async function closeBrowser(): Promise<void> {
  await (await shared)?.close()
  shared = undefined
}

export interface PageOptions {
  hasScript?: boolean
  colours?: 'light' | 'dark'
  width?: number
  timezone?: string
}

/** A page of a browser of its own, with no cookie yet. */
export async function openPage({
  hasScript = true,
  colours = 'light',
  width = 1360,
  timezone = 'UTC',
}: PageOptions = {}) {
  const context = await (await browser()).newContext({
    javaScriptEnabled: hasScript,
    colorScheme: colours,
    timezoneId: timezone,
    viewport: { width, height: 900 },
  })
  const page = await context.newPage()
  const faults: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' && /Content Security Policy/i.test(message.text())) faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(error.message))
  onTestFinished(async () => {
    await context.close()
    expect(faults, 'what the policy of the page refused, and errors of its scripts').toEqual([])
  })
  return page
}

/** Signs in as a person does: opens the link and presses the button. */
export async function signInto(
  page: Page,
  { pages, access }: { pages: { address(): string | null }; access: TokenContext },
  role: PersonRole,
): Promise<void> {
  const { link } = await createLink(access, { name: 'mira', role }, 'test')
  await page.goto(`${pages.address()}/signin?link=${link.reveal()}`)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL('**/overview')
}

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * What axe-core finds that is moderate or worse, the size of targets included.
 * @param rules those alone (default: all)
 */
export async function accessibilityFaults(page: Page, rules?: string[]) {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(source)
  const found = await page.evaluate(async (only) => {
    const { axe: checks } = globalThis as unknown as { axe: typeof axe }
    const { violations } = await checks.run({
      ...(only ? { runOnly: only } : {}),
      rules: { 'target-size': { enabled: true } },
    })
    return violations.map(({ id, impact, nodes }) => ({ id, impact, at: nodes.map(({ html }) => html).slice(0, 3) }))
  }, rules)
  return found.filter(({ impact }) => impact !== 'minor')
}

/** @param where of what, where a test looks at several pages */
export async function expectAccessible(page: Page, where?: string): Promise<void> {
  expect(await accessibilityFaults(page), where).toEqual([])
}
