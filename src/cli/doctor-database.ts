import type { Config } from '../config.ts'
import { namesInRules, nearestName, type RuleName } from '../domain/rule-names.ts'
import { messageOf } from '../errors.ts'
import { asRow, counted, instant } from './cell.ts'
import type { Report } from './doctor.ts'
import { commandLine } from './invocation.ts'
import type { Program } from './program.ts'
import { unreadableText } from './sync.ts'

export interface LastSync {
  id: string
  state: string
  finishedAt: number | null
  offersSeen: number
  offersUnreadable: number
  /** JSON, see `FirstUnreadable`. */
  firstUnreadable: string | null
  error: string | null
}

/** What the database of an installation says to its configuration. */
export interface Inspection {
  /** The name of the key that opens it, or why the service would not start. */
  key:
    | {
        name: string
        /** It is the next one: a rotation came that far, and the setting has not. */
        next: boolean
        /** False: there is no database. */
        opened: boolean
      }
    | { fault: string }
  /** The newest run that ended; undefined before the first. */
  lastSync: LastSync | undefined
  /** Categories in order, and those SKUs that rules name and the catalogue has; undefined before the first whole reading. */
  catalogue: { categories: string[]; skus: ReadonlySet<string> } | undefined
}

/** The key-encryption key, as the start would find it. @returns undefined when the database cannot be read */
export async function checkKey(config: Config, program: Program, report: Report): Promise<Inspection | undefined> {
  let inspection: Inspection
  try {
    inspection = await program.inspect(config)
  } catch (error) {
    report(
      'warn',
      'database',
      `it cannot be looked into: ${messageOf(error)}`,
      'is it the one of this service, and may this user read it?',
    )
    return undefined
  }
  const { key } = inspection
  if ('fault' in key) {
    const [, what = key.fault, mend] = /^(.*?): (.*)$/s.exec(key.fault) ?? []
    report('fail', 'secret', `the service does not start: ${what}`, mend)
  } else if (key.next) {
    const mend = 'put it in the place of the key-encryption key'
    report('warn', 'secret', `only the next key-encryption key, ${key.name}, opens the database`, mend)
  } else {
    const message = key.opened ? 'opens the database' : 'is well formed'
    report('ok', 'secret', `the key-encryption key ${key.name} ${message}`)
    if (!key.opened) {
      const mend = `\`${commandLine('database create')}\` makes one for a new installation; else look for its volume and dataDir`
      report('fail', 'database', `there is none in ${config.dataDir}: the service does not start`, mend)
    }
  }
  return inspection
}

/** How the last sync run ended: while it fails, the stores sell at old prices, and nothing new is listed. */
export function checkSync({ lastSync }: Inspection, now: number, report: Report): void {
  if (!lastSync) return
  const { id, state, finishedAt, offersSeen, offersUnreadable, firstUnreadable, error } = lastSync
  const at = instant(finishedAt === null ? undefined : new Date(finishedAt).toISOString(), now)
  const unread = offersUnreadable === 0 ? '' : `${counted(offersUnreadable, 'offer', 'offers')} could not be read`
  const first = firstUnreadable === null ? '' : `; the first by ${unreadableText(asRow(JSON.parse(firstUnreadable)))}`
  const mend = unread === '' ? `see \`${commandLine(`sync show ${id}`)}\`` : `see \`${commandLine('dialect check')}\``
  if (state === 'failed') {
    const causes = [error, unread === '' ? null : unread + first].filter((cause) => cause !== null)
    report('fail', 'catalogue', `the last sync failed, ${at}: ${causes.join('; ')}`, mend)
  } else if (unread !== '') report('warn', 'catalogue', `${unread} in the last sync, ${at}${first}`, mend)
  else report('ok', 'catalogue', `${counted(offersSeen, 'offer', 'offers')}, read ${at}`)
}

/** Most that are told one by one. */
const RULES_SHOWN = 10
const CATEGORIES_SHOWN = 5

/** A rule that names what the catalogue does not have does nothing, and nothing else says so. */
export function checkRules({ stores }: Config, { catalogue }: Inspection, report: Report): void {
  const names = namesInRules(stores)
  if (!catalogue || names.length === 0) return
  const categories = new Set(catalogue.categories)
  const strange = names.filter(({ kind, name }) => !(kind === 'SKU' ? catalogue.skus : categories).has(name))
  for (const one of strange.slice(0, RULES_SHOWN)) {
    const { store, rule, kind, name } = one
    report('warn', 'rules', `${rule} of ${store}: no offer has the ${kind} "${name}"`, meant(one, catalogue.categories))
  }
  const more = strange.length - RULES_SHOWN
  if (more > 0) report('warn', 'rules', `and ${more} more names that no offer has`)
  if (strange.length === 0) report('ok', 'rules', 'every category and SKU that they name is in the catalogue')
}

function meant({ kind, name }: RuleName, categories: string[]): string {
  if (kind === 'SKU') return 'write it as the supplier does, in the same case, or take it out'
  const nearest = nearestName(name, categories)
  if (nearest !== undefined) return `write "${nearest}", if that is meant`
  if (categories.length === 0) return 'take it out: no offer has a category'
  const more = categories.length - CATEGORIES_SHOWN
  const some = categories.slice(0, CATEGORIES_SHOWN).map((category) => `"${category}"`)
  return `there are ${some.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
