/** Walks the console as its readers do: from the routes that need no id, by links, live parts and filters, to every other page. */
import type { Route } from '../../src/console/router.ts'

/** One address that a reader can come to. */
export interface Stop {
  /** Path and query. */
  to: string
  /** The page or part that answers it; undefined: none does. */
  route: Route | undefined
  /** What it is an example of: the route, and what the query asks for. */
  kind: string
  /** The address whose answer led here. */
  from: string
}

export interface Walk {
  routes: readonly Route[]
  /** Asks for an address. @returns the markup of its answer */
  read: (stop: Stop) => Promise<string>
  /** What is typed into the text fields of filters, one field at a time. */
  searches?: readonly string[]
  /** How many addresses of a kind are followed from addresses of another one (default: all). */
  examples?: number
  /** Where a link to the next page of a list leads instead: deep into it. */
  deeper?: (next: URL) => URL | undefined
}

/** Visits every address once. @returns them in the order of the visits */
export async function walkConsole({ routes, read, searches = [], examples = Infinity, deeper }: Walk): Promise<Stop[]> {
  const pages = routes.filter(({ method }) => method === 'get')
  const seen = new Set<string>()
  const followed = new Map<string, number>()
  const stops: Stop[] = []
  const add = (to: string, from: Stop | undefined, typed?: string): void => {
    const url = new URL(to, 'http://console')
    const route = pages.find(({ path }) => isAt(path, url.pathname))
    const asked = [...url.searchParams.keys()].map((name) => (typed === undefined ? name : `${name}=${typed}`))
    const kind = `${route?.path ?? url.pathname}${asked.length > 0 ? `?${asked.join('&')}` : ''}`
    const way = `${from?.kind} to ${kind}`
    const known = followed.get(way) ?? 0
    const address = `${url.pathname}${url.search}`
    if (seen.has(address) || known >= examples) return
    followed.set(way, known + 1)
    seen.add(address)
    stops.push({ to: address, route, kind, from: from?.to ?? '' })
  }
  for (const { path } of pages) if (!path.includes(':')) add(path, undefined)
  for (let index = 0; index < stops.length; index += 1) {
    const stop = stops[index] as Stop
    const markup = await read(stop)
    for (const to of linksIn(markup)) {
      if (isTimeAmongFilters(to, stop)) continue
      add(to, stop)
      const next = new URL(to, 'http://console')
      const deep = next.search === '' ? undefined : deeper?.(next)
      if (deep) add(`${deep.pathname}${deep.search}`, stop)
    }
    for (const { to, name, values, isText } of fieldsIn(markup)) {
      for (const value of isText ? searches : values) {
        add(`${to}?${new URLSearchParams({ [name]: value })}`, stop, isText ? `"${value}"` : value)
      }
    }
  }
  return stops
}

/** A time is chosen from a whole list: beside each other filter, times would make hundreds of addresses of a few. */
const isTimeAmongFilters = (to: string, { to: from }: Stop): boolean =>
  /[?&]from=/.test(to) && !/[?&](before|after)=/.test(to) && from.includes('?')

/** Where links and live parts lead, in the console itself. */
const linksIn = (markup: string): string[] =>
  [...markup.matchAll(/<[a-z]+ [^>]*?(?<=\s)(?:href|hx-get)="(\/[^"#]*)/g)]
    .filter(([tag]) => !/^<link\b/.test(tag))
    .map(([, to = '']) => unescaped(to))

interface Field {
  to: string
  name: string
  isText: boolean
  /** What can be chosen. */
  values: string[]
}

/** The fields of filters. */
function fieldsIn(markup: string): Field[] {
  return [...markup.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs)].flatMap(([, head = '', inner = '']): Field[] => {
    if (attribute(head, 'method') !== 'get') return []
    const to = attribute(head, 'action') ?? ''
    const lists = [...inner.matchAll(/<select\b([^>]*)>(.*?)<\/select>/gs)].map(([, own = '', options = '']) => ({
      to,
      name: attribute(own, 'name') ?? '',
      isText: false,
      values: [...options.matchAll(/<option\b([^>]*)>/g)].map(([, option = '']) => attribute(option, 'value') ?? ''),
    }))
    const texts = [...inner.matchAll(/<input\b([^>]*)>/g)].flatMap(([, own = '']) =>
      /^(text|search)$/.test(attribute(own, 'type') ?? 'text')
        ? [{ to, name: attribute(own, 'name') ?? '', isText: true, values: [] }]
        : [],
    )
    return [...lists, ...texts]
  })
}

const attribute = (tag: string, name: string): string | undefined => {
  const [, value] = new RegExp(`\\s${name}="([^"]*)"`).exec(tag) ?? []
  return value === undefined ? undefined : unescaped(value)
}

const entities: Record<string, string> = { amp: '&', quot: '"', '#39': "'", lt: '<', gt: '>' }
const unescaped = (text: string): string =>
  text.replaceAll(/&(amp|quot|#39|lt|gt);/g, (_, name: string) => entities[name] ?? '')

/** Whether the pattern of a route is that of a path. */
const isAt = (pattern: string, path: string): boolean =>
  new RegExp(`^${pattern.replaceAll(/:\w+/g, '[^/]+')}$`).test(path)
