/** The settings in force, for people: by name, without secrets. */
import { kindOf } from '../stores/kinds.ts'
import { type Config, configShape } from './config.ts'

export interface SettingInForce {
  /** The name in the configuration: `ordering.inFlight`. */
  name: string
  /** A text stands as it is, any other value as JSON. */
  value: string
  /** Whether the value is the default, which a setting has when the configuration does not name the setting. */
  isDefault: boolean
}

/** Returns an address without its credentials and its query, which may hold a password or a token. */
export function withoutSecrets(address: string): string {
  const { origin, pathname } = new URL(address)
  return origin + pathname
}

/** Returns every setting, in the order of the configuration. A store's settings are named by its id: `stores.demo-1234.name`. */
export function settingsInForce(config: Config): SettingInForce[] {
  const defaults = configShape.parse({ supplier: { baseUrl: 'https://supplier.example/v1' }, stores: [] })
  const usual = {
    ...defaults,
    supplier: { dialect: defaults.supplier.dialect },
    ...(config.databaseUrl && onServer(defaults)),
  }
  const set = { ...config, ...(config.databaseUrl && onServer(config)) }
  const names = Object.keys(configShape.shape) as (keyof typeof configShape.shape)[]
  return [
    ...names.filter((name) => name !== 'stores').flatMap((name) => leavesOf(name, set[name], usual[name])),
    ...config.stores.flatMap((store) => {
      const { shape } = kindOf(store).settings
      const usualOfStore = Object.entries(shape).map(([key, one]) => [key, one.safeParse(undefined).data])
      const { currency } = config.dialectFacts.money
      // What the program adds when it reads the configuration, such as credentials, is left out.
      const own = Object.entries(store).filter(([key]) => key in shape)
      return leavesOf(`stores.${store.id}`, Object.fromEntries(own), { ...Object.fromEntries(usualOfStore), currency })
    }),
  ]
}

/** The settings with other values for a database on a server: its operator makes the backups, and its address may be a secret. */
const onServer = ({ backups, databaseUrl }: Pick<Config, 'backups'> & Partial<Pick<Config, 'databaseUrl'>>) => ({
  backups: { ...backups, cron: 'off: PostgreSQL' },
  database: { url: databaseUrl ? serverOf(databaseUrl.reveal()) : null },
})

/** Returns the address without user, password and options. */
function serverOf(address: string): string {
  if (!URL.canParse(address)) return 'set'
  const { protocol, host, pathname } = new URL(address)
  return `${protocol}//${host}${pathname}`
}

/** Lists the single values of a setting. A list is one value. */
export function leavesOf(name: string, value: unknown, usual: unknown): SettingInForce[] {
  if (isRecord(value)) {
    return Object.entries(value).flatMap(([key, inner]) =>
      leavesOf(`${name}.${key}`, inner, isRecord(usual) ? usual[key] : undefined),
    )
  }
  return [{ name, value: textOf(value), isDefault: JSON.stringify(value) === JSON.stringify(usual) }]
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const textOf = (value: unknown): string => {
  if (typeof value !== 'string') return JSON.stringify(value) ?? 'null'
  return /^https?:/.test(value) ? withoutSecrets(value) : value
}
