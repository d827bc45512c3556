/** The routes of the console, made from its pages, and the checks that every request passes: host, session, origin and role. */
import { type NextFunction, type Request, type RequestHandler, type Response, Router } from 'express'
import {
  type PersonRole,
  readLink,
  type SessionCaller,
  sessionCaller,
  signIn,
  signOut,
  signOutScopes,
} from '../access/sessions.ts'
import { assertAllowed, type TokenContext } from '../access/tokens.ts'
import { duration } from '../domain/figures.ts'
import type { Html } from '../domain/html.ts'
import { Failure } from '../errors.ts'
import { errorOf } from '../http/answers.ts'
import type { AnswerOf, OperationId } from '../http/api/table.ts'
import { readForm } from '../http/bodies.ts'
import { type Operation, performerOf, sendFile } from '../http/operation.ts'
import { createGuesses, networkOf, PATH_FORM } from '../http/server.ts'
import type { Log } from '../log.ts'
import { assetsRouter } from './assets.ts'
import { isDownload, isFromElsewhere, isFromOwnPage } from './guard.ts'
import { framed, landing, refusalPart, refusalTitle, standing } from './layout.ts'
import { digestOf, withDigest } from './live.ts'
import { sendMarkup } from './markup-answer.ts'
import type { Action, NavigationEntry, Notice, OperationInput, Page, Shown, Visit } from './page.ts'
import { consolePages } from './pages.ts'
import { askedPage, LINK_GONE, SIGNED_OUT, sessionCookie, signedOutPage, signInPage } from './signin.ts'
import type { pageStreams } from './streams.ts'
import { sentenceOf } from './words.ts'

export interface RouterParts {
  /** The address of the page of the sandbox; only set in a demo, where the sandbox is the supplier. */
  sandboxUrl?: string | undefined
  /** The operations of the API, which are called in process. */
  operations: readonly Operation[]
  access: TokenContext
  monotonic: () => number
  log: Log
  /** The address of each Host header that is ours. */
  origins: () => ReadonlyMap<string, string>
  /** The address at which people reach the console; null before it listens. */
  address: () => string | null
  version: string
  streams: ReturnType<typeof pageStreams>
}

export interface Route {
  method: 'get' | 'post'
  path: string
  role: PersonRole
  page: Page
  action?: Action
  part?: NonNullable<Page['parts']>[string]
  file?: Page['file']
}

export const routesOf = (pages: readonly Page[]): Route[] =>
  pages.flatMap((page) => [
    { method: 'get', path: page.path, role: 'viewer', page },
    ...(page.file ? [{ method: 'get', path: `${page.path}.csv`, role: 'viewer', page, file: page.file } as const] : []),
    ...Object.entries(page.parts ?? {}).map(
      ([name, part]): Route => ({ method: 'get', path: `${page.path}/parts/${name}`, role: 'viewer', page, part }),
    ),
    ...Object.entries(page.actions ?? {}).map(
      ([name, action]): Route => ({ method: 'post', path: `${page.path}/${name}`, role: action.role, page, action }),
    ),
  ])

/** How old a status may be. Pages and parts share one status, because they ask at the same moments. */
const STATUS_MS = 2_000

export function consoleRouter(parts: RouterParts): Router {
  const { access, log, origins } = parts
  const address = () => parts.address() ?? ''
  const visits = openVisits(parts)
  const { sendPage, sendStanding } = pageSender(parts)
  parts.streams.before(visits.readAgain)
  /** What the next page of a session says first, by the id of the session. */
  const notices = new Map<string, Notice>()

  const callerOf = async (request: Request): Promise<SessionCaller | undefined> => {
    const text = isFromElsewhere(request) ? undefined : sessionCookie(address()).read(request.headers)
    return text === undefined ? undefined : sessionCaller(access, text)
  }

  /** Sends the page of an action that failed, with what the person typed and what is wrong with the typed values. */
  async function sendFailed(response: Response, visit: Visit, page: Page, thrown: unknown): Promise<void> {
    const { status, message, fields = [] } = errorOf(thrown, log, response.get('x-request-id'))
    const placed = fields.map((fault) => ({ ...fault, field: fieldIn(visit.form, fault.field) }))
    const faults = new Map(placed.map((fault) => [fault.field, sentenceOf(fault.message)]))
    // A field that the form does not have is said at the top.
    const others = placed.filter(({ field, message: why }) => !visit.form.has(field) && !message.includes(why))
    const isBeside = others.length === 0 && placed.some(({ field }) => visit.form.has(field))
    const said = isBeside ? 'Something in the form is not right. It is said beside the field.' : sentenceOf(message)
    const text = [said, ...others.map((fault) => sentenceOf(fault.message))].join(' ')
    const shown = await page.show({ ...visit, faults }).catch(() => undefined)
    if (!shown) throw thrown
    response.status(status)
    const kind = status >= 500 ? 'stop' : 'held'
    const word = status === 503 ? 'Not now' : refusalTitle(status === 400 ? 409 : status)
    await sendPage(response, visit, page, shown, { kind, word, text })
  }

  async function act(response: Response, visit: Visit, page: Page, action: Action): Promise<void> {
    const done = await action
      .run(visit)
      .catch((thrown: unknown) => ({ thrown }))
      .finally(visits.readAgain)
    if ('thrown' in done) return sendFailed(response, visit, page, done.thrown)
    if ('main' in done) return sendPage(response, visit, page, done)
    notices.set(visit.caller.id, done.notice)
    response.redirect(303, done.to ?? filled(page.path, visit.path))
  }

  const handlerOf = ({ page, role, action, part, file }: Route): RequestHandler => {
    return async (request, response) => {
      if (file && !isDownload(request.headers, origins().get(request.headers.host ?? '') ?? '')) {
        throw new ConsoleRefusal(403, 'A file is downloaded on a page of the console itself.')
      }
      const caller = await callerOf(request)
      if (!caller) return sendSignedOut(request, response, action || part || file ? undefined : askedPage(address()))
      assertAllowed(caller, { people: role })
      const visit = visits.open(request, caller, action && (await readForm(request, response)))
      if (part) {
        const content = await part(visit)
        if (content) sendPart(response, content, visit)
        else response.set('hx-refresh', 'true').status(204).end()
      } else if (file) await sendFile(response, 200, await file(visit))
      else if (action) await act(response, visit, page, action)
      else {
        const shown = await page.show(visit)
        if (shown.to !== undefined) return response.redirect(303, shown.to)
        const notice = notices.get(caller.id)
        notices.delete(caller.id)
        await sendPage(response, visit, page, shown, notice)
      }
    }
  }

  const admitted: RequestHandler = (request, _response, next) => {
    const origin = origins().get(request.headers.host ?? '')
    if (origin === undefined) {
      throw new ConsoleRefusal(421, 'This host name is not one of the console: see console.url in the configuration.')
    }
    if (request.method !== 'GET' && request.method !== 'HEAD' && !isFromOwnPage(request.headers, origin)) {
      throw new ConsoleRefusal(403, 'An action must come from a page of the console itself. Nothing was done.')
    }
    next()
  }

  const router = Router({ strict: true, caseSensitive: true })
  router.use(admitted)
  router.use(assetsRouter())
  router.get('/', (_request, response) => response.redirect(303, '/overview'))
  routeSigning(router, parts, callerOf, ({ id }) => notices.delete(id))
  router.get('/frame', async (request, response) => {
    const caller = await callerOf(request)
    if (!caller) return sendSignedOut(request, response)
    await sendStanding(response, visits.open(request, caller))
  })
  router.get('/stream', async (request, response) => {
    const caller = await callerOf(request)
    if (!caller) return void response.status(204).end()
    const isSignedIn = async () => (await callerOf(request)) !== undefined
    parts.streams.start({ response, session: caller.id, isSignedIn }, String(request.query.seen ?? ''))
  })
  for (const route of routesOf(consolePages)) router[route.method](route.path, handlerOf(route))
  // The address of an action, opened by hand or by the Back button, leads to the page of its form.
  for (const { path, page, action } of routesOf(consolePages)) {
    if (action)
      router.get(path, ({ params }, response) => response.redirect(303, filled(page.path, params as Visit['path'])))
  }
  router.use(() => {
    throw new ConsoleRefusal(404, 'The console has no such page.')
  })
  router.use(async (thrown: unknown, request: Request, response: Response, _next: NextFunction) => {
    if (response.headersSent) return void response.destroy()
    const requestId = response.get('x-request-id') ?? ''
    const refusal = thrown instanceof ConsoleRefusal ? thrown : errorOf(thrown, log, requestId)
    const { status } = refusal
    const text = sentenceOf(refusal.message)
    response.status(status)
    const main = refusalPart(status, text, requestId)
    // A request for another host (421) is answered as if it had no session.
    const caller = status === 421 ? undefined : await callerOf(request).catch(() => undefined)
    if (!caller) return sendMarkup(response, landing(refusalTitle(status), main))
    const shown = { title: refusalTitle(status), main }
    await sendPage(response, visits.open(request, caller), { path: '', show: async () => shown }, shown)
  })
  return router
}

/** Opens a visit for each request. Through the visit, a page calls the API in the name of its reader. */
function openVisits({ access, monotonic, operations }: RouterParts) {
  const performers = new Map(operations.map((one) => [one.name, performerOf(one)]))
  const kept = new Map<OperationId, { at: number; answer: Promise<unknown> }>()
  /** Returns an answer that all visits share, at most `STATUS_MS` old. */
  function shared<N extends 'viewStatus' | 'viewWaiting'>(name: N, call: Visit['call']): Promise<AnswerOf<N>> {
    const known = kept.get(name)
    const one = known && monotonic() - known.at <= STATUS_MS ? known : { at: monotonic(), answer: call(name) }
    kept.set(name, one)
    return one.answer as Promise<AnswerOf<N>>
  }
  return {
    /** Makes the next page read the status again: an action may have changed the status. */
    readAgain: (): void => kept.clear(),
    open: (request: Request, caller: SessionCaller, form?: URLSearchParams): Visit => {
      /** A visit without a form changes nothing: whatever its parts ask alike is asked once. */
      const answers = new Map<string, Promise<unknown>>()
      const call: Visit['call'] = (name, asked = {}) => {
        const question = JSON.stringify([name, asked])
        const answer = (form ? undefined : answers.get(question)) ?? ask(name, asked)
        answers.set(question, answer)
        return answer as Promise<AnswerOf<typeof name>>
      }
      async function ask<N extends OperationId>(name: N, asked: OperationInput<N>): Promise<AnswerOf<N>> {
        const perform = performers.get(name)
        if (!perform) throw new Failure('internal', `there is no operation ${name}`)
        const { path = {}, query = {}, body, version } = asked
        const ifMatch = version === undefined ? undefined : `"${version}"`
        const input = { path: filledIn(path), query: given(query), ifMatch, readBody: async () => body }
        const { data } = await perform({ caller, ...input })
        return data as AnswerOf<N>
      }
      return {
        caller,
        path: request.params as Record<string, string>,
        query: new URL(request.url, 'http://console').searchParams,
        action: form && request.path.split('/').at(-1),
        form: form ?? new URLSearchParams(),
        faults: new Map(),
        now: access.now(),
        call,
        status: () => shared('viewStatus', call),
        waiting: () => shared('viewWaiting', call),
      }
    },
  }
}

/** Sends a live part; nothing where the page has it as it is. */
function sendPart(response: Response, content: Html, { query }: Visit): void {
  if (digestOf(content) === query.get('seen')) response.status(204).end()
  else sendMarkup(response, withDigest(content))
}

function pageSender({ monotonic, version, sandboxUrl, streams }: RouterParts) {
  const startedAt = monotonic()
  const navigation: readonly NavigationEntry[] = sandboxUrl
    ? [...consolePages, { path: sandboxUrl, navigation: { group: 'Supplier', label: 'Sandbox' } }]
    : consolePages
  const statusOf = ({ status }: Visit) => status().catch(() => undefined)
  async function sendPage(response: Response, visit: Visit, page: Page, shown: Shown, said = shown.notice) {
    const { caller, now } = visit
    const [status, current] = [await statusOf(visit), page.below ?? page.path]
    const about = `Quayside ${version}, running for ${duration(monotonic() - startedAt)}.`
    const stream = `/stream?seen=${streams.seen()}`
    if (shown.next !== undefined) response.set('refresh', `2; url=${shown.next}`)
    sendMarkup(response, framed({ ...shown, caller, navigation, current, status, notice: said, now, stream, about }))
  }
  async function sendStanding(response: Response, visit: Visit): Promise<void> {
    const current = visit.query.get('at') ?? ''
    sendPart(response, standing({ navigation, current, status: await statusOf(visit) }), visit)
  }
  return { sendPage, sendStanding }
}

/** @param asked keeps the page that was asked for, which opens after the person has signed in */
function sendSignedOut(request: Request, response: Response, asked?: Pick<ReturnType<typeof askedPage>, 'set'>): void {
  // After a request for a live part, the browser loads the whole page again. That page says that the person is signed out.
  if (request.headers['hx-request'] !== undefined) response.set('hx-refresh', 'true')
  else if (asked) response.set('set-cookie', asked.set(request.url))
  response.status(401)
  sendMarkup(response, signedOutPage(SIGNED_OUT, asked && request.url))
}

function routeSigning(
  router: Router,
  { access, monotonic, address, sandboxUrl }: RouterParts,
  callerOf: (request: Request) => Promise<SessionCaller | undefined>,
  forget: (caller: SessionCaller) => void,
): void {
  const cookies = () => ({ session: sessionCookie(address() ?? ''), asked: askedPage(address() ?? '') })
  const guesses = createGuesses(monotonic)
  router.get('/signin', async (request, response) => {
    const link = String(request.query.link ?? '')
    const good = await readLink(access, link)
    const to = sandboxUrl === undefined ? String(request.query.to ?? '') : '/setup'
    const opens = PATH_FORM.test(to) ? { to, isOffer: sandboxUrl !== undefined } : undefined
    if (good) return sendMarkup(response, signInPage(link, good, access.now(), opens), true)
    if (await callerOf(request)) return response.redirect(303, opens?.to ?? '/overview')
    response.status(401)
    sendMarkup(response, signedOutPage(request.query.link === undefined ? SIGNED_OUT : LINK_GONE))
  })
  router.post('/signin', async (request, response) => {
    const form = await readForm(request, response)
    try {
      const begun = await signIn(access, form.get('link') ?? '')
      const { session, asked } = cookies()
      response
        .set('set-cookie', [session.set(begun.reveal()), asked.clear])
        .redirect(303, opensAfter(form) ?? asked.read(request.headers))
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'unauthenticated') throw error
      // A good link signs in before anything is counted, so that no guesser keeps a person out.
      if (guesses.count(networkOf(request.ip ?? ''))) {
        throw new ConsoleRefusal(
          429,
          'Too many sign-ins from your network have failed. A link that is good still works.',
        )
      }
      response.status(401)
      sendMarkup(response, signedOutPage(LINK_GONE))
    }
  })
  router.post('/signout', async (request, response) => {
    const caller = await callerOf(request)
    if (!caller) return sendSignedOut(request, response)
    const wanted = (await readForm(request, response)).get('scope')
    const scope = signOutScopes.find((one) => one === wanted)
    if (!scope) throw new Failure('invalid', `scope must be one of ${signOutScopes.join(', ')}`)
    await signOut(access, caller, scope)
    forget(caller)
    response.set('set-cookie', cookies().session.clear).redirect(303, '/signin')
  })
}

/** The page that a link opens; undefined where the link names none. */
function opensAfter(form: URLSearchParams): string | undefined {
  const to = form.get('to') ?? ''
  return PATH_FORM.test(to) ? to : undefined
}

/** A request that the console refuses by itself, before it asks any operation. */
class ConsoleRefusal extends Error {
  readonly status: number

  constructor(status: number, sentence: string) {
    super(sentence)
    this.status = status
  }
}

type Values = Record<string, string | null | undefined>

/** Makes a missing value an empty text. So a form that was posted without an id asks for an id that does not exist. */
const filledIn = (values: Values): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value ?? '']))

/** Returns the field of a form that a fault is about: of `stores.0.pricing.markup.percent` the last pieces, or one of them. */
function fieldIn(form: URLSearchParams, named: string): string {
  const pieces = named.split('.')
  const ends = pieces.map((_, index) => pieces.slice(index).join('.'))
  return [...ends, ...pieces].find((one) => form.has(one)) ?? named
}

const given = (values: Values): Record<string, string> =>
  Object.fromEntries(Object.entries(values).flatMap(([name, value]) => (value ? [[name, value]] : [])))

export const filled = (path: string, pieces: Record<string, string>): string =>
  path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(pieces[name] ?? ''))
