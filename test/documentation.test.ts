import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { runCommand } from '../src/cli/commands.ts'
import { sectionOf } from '../src/cli/exit-codes.ts'
import { configShape } from '../src/config/config.ts'
import { dialectShape, errorKinds } from '../src/dialect/dialect.ts'
import { acknowledgementOf, type ItemAnswer, type Sent } from '../src/domain/acknowledgement.ts'
import { bodyColumns, deliveryColumns, earningColumns, keyColumns, orderColumns } from '../src/domain/data-export.ts'
import { alertWords } from '../src/domain/labels.ts'
import { type WayIntoReview, waysIntoReview } from '../src/domain/purchase.ts'
import { Failure, type FailureReason, localReasons } from '../src/errors.ts'
import { errorCodes } from '../src/http/answers.ts'
import { apiOperations } from '../src/http/api/api.ts'
import { callbacks } from '../src/http/api/callbacks.ts'
import type { ApiContext } from '../src/http/operation.ts'
import { decisionTypes } from '../src/ordering/choices.ts'
import { controls } from '../src/sandbox/control-table.ts'
import { faultOptions, faultTable, matchFields } from '../src/sandbox/faults.ts'
import { readListingAnswer } from '../src/stores/backend/backend.ts'
import { storeKinds } from '../src/stores/kinds.ts'
import { METAFIELDS_MAX } from '../src/stores/shopify/documents.ts'
import { scopesFor } from '../src/stores/shopify/findings.ts'
import { keysOnOrder } from '../src/stores/shopify/hand-over.ts'
import { shopify } from '../src/stores/shopify/kind.ts'
import { APP_NAMESPACE } from '../src/stores/shopify/orders.ts'
import type { StoreKind } from '../src/stores/store-kind.ts'
import { everyStore } from '../src/stores/store-settings.ts'
import { textOf } from './shops/html.ts'
import { rendered } from './shops/shopify-mails.ts'
import { corner } from './stores/corner/kind.ts'
import { databaseFile } from './support/database.ts'

test('the file of the API key in the commands of the README was not ignored by git', () => {
  const [, keyFile = ''] = /--api-key-file (\S+)/.exec(read('README.md')) ?? []
  expect(read('.gitignore').split('\n')).toContain(`/${keyFile}`)
})

const file = (name: string) => path.join(import.meta.dirname, '..', name)
const read = (name: string) => readFileSync(file(name), 'utf8')
/** Files that `init` or the reader makes. */
const madeBySetUp = /^config\/(quayside\.json|secrets\/|my-supplier\.json|web-2\.json|worker\.json)/
/** The anchors that GitHub gives the headings of a page: those that come again are numbered, and comments in code are none. */
function anchorsOf(page: string): string[] {
  const seen = new Map<string, number>()
  return [...page.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => {
    const text = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = text.replace(/[^\p{L}\p{N}_\- ]/gu, '').replaceAll(' ', '-')
    const count = seen.get(anchor) ?? 0
    seen.set(anchor, count + 1)
    return count === 0 ? anchor : `${anchor}-${count}`
  })
}
/** The links of a page that lead into the repository: file and anchor. Code has none. */
const linksOf = (page: string): { to: string; anchor: string | undefined; link: string }[] =>
  [...page.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)/g)].map(
    ([link, to = '', anchor]) => ({ link, to, anchor }),
  )
/** The code blocks of a page in one language. */
const blocks = (page: string, language: string) =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map((match) => match[1] ?? '')

/** Paths of all fields of a shape that are no objects themselves: `listen.host`, `stores[].id`. A list that may be left out is one. */
function leaves(shape: z.core.$ZodType, prefix = ''): string[] {
  const def = shape._zod.def as unknown as Record<string, unknown>
  const inner = (def.innerType ?? def.in) as z.core.$ZodType | undefined
  if (inner) return def.type === 'default' && inner._zod.def.type === 'array' ? [prefix] : leaves(inner, prefix)
  if (def.type === 'array' && ['object', 'union'].includes((def.element as z.core.$ZodType)._zod.def.type)) {
    return leaves(def.element as z.core.$ZodType, `${prefix}[]`)
  }
  if (def.discriminator !== undefined) {
    return [...new Set((def.options as z.core.$ZodType[]).flatMap((option) => leaves(option, prefix)))]
  }
  if (def.type !== 'object') return [prefix]
  const fields = Object.entries(def.shape as Record<string, z.core.$ZodType>)
  return fields.flatMap(([name, field]) => leaves(field, prefix === '' ? name : `${prefix}.${name}`))
}

/** What the sandbox sells, by SKU. */
const productNames = new Map(
  (JSON.parse(read('data/sandbox/catalogue.json')) as { sku: string; name: string }[]).map(({ sku, name }) => [
    sku,
    name,
  ]),
)

const documents = readdirSync(file('docs'), { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.md'),
)
const atTheTop = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']
const pages = [...atTheTop, ...documents.map((name) => `docs/${name}`)]

describe.each(pages)('%s', (name) => {
  const page = read(name)

  test('names files that exist', () => {
    const named = [...page.matchAll(/`((?:src|test|docs|config)\/[\w./-]+\.\w+)`/g)].map(([, at = '']) => at)
    expect(named.filter((at) => !existsSync(file(at)) && !madeBySetUp.test(at))).toEqual([])
  })

  test('links to pages and headings that exist', () => {
    const broken = linksOf(page).filter(({ to, anchor }) => {
      const target = to === '' ? name : path.posix.join(path.posix.dirname(name), to)
      return !existsSync(file(target)) || (anchor !== undefined && !anchorsOf(read(target)).includes(anchor))
    })
    expect(broken.map(({ link }) => link)).toEqual([])
  })

  test('names products as the sandbox sells them', () => {
    const prefixes = [...new Set([...productNames.keys()].map((sku) => sku.slice(0, 4)))].join('|')
    const skus = [...page.matchAll(new RegExp(`\\b(?:${prefixes})[A-Z0-9-]+`, 'g'))].map(([sku]) => sku)
    // An example of one that is sold no more.
    expect(skus.filter((sku) => sku !== 'GAM-OLD' && !productNames.has(sku))).toEqual([])
    const named = [...page.matchAll(/"sku": "([^"]+)",\s+"name": "([^"]+)"/g)]
    expect(named.filter(([, sku = '', as]) => productNames.get(sku) !== as).map(([text]) => text)).toEqual([])
  })
})

describe('the index of the documents', () => {
  const index = read('docs/README.md')
  const own = (name: string) => !name.endsWith('.png') && name !== 'README.md'
  const files = readdirSync(file('docs'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(file('docs'), path.join(entry.parentPath, entry.name)))
    .filter(own)

  test('lists every document once', () => {
    const rows = index.split('\n').filter((line) => line.startsWith('|'))
    const listed = linksOf(rows.join('\n')).map(({ to }) => to)
    expect(listed.toSorted()).toEqual([...files, ...atTheTop.map((name) => `../${name}`)].toSorted())
  })

  test('says for whom each is', () => {
    const rows = index.split('\n').filter((line) => line.startsWith('| ['))
    expect(rows.filter((row) => (row.split('|').at(-2) ?? '').trim().length < 8)).toEqual([])
  })

  test('is one link away from the README, and so are the pages for someone in need', () => {
    const linked = linksOf(read('README.md')).map(({ to }) => to)
    const wanted = ['docs/README.md', 'docs/troubleshooting.md', 'docs/compatibility.md', 'SECURITY.md', 'CHANGELOG.md']
    expect(linked).toEqual(expect.arrayContaining(wanted))
  })
})

describe('the page on troubleshooting', () => {
  const page = read('docs/troubleshooting.md')
  const sections = page
    .split(/^(?=##)/m)
    .flatMap((text) =>
      [...text.matchAll(/^### `(\w+)`\n\n([\s\S]*)/g)].map(([, name = '', words = '']) => ({ name, words })),
    )
  const names = [...new Set([...Object.keys(errorCodes), ...localReasons])]

  test('has one section for each code and each reason of an error, and for nothing else', () => {
    expect(sections.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
    expect(names.length).toBeGreaterThan(80)
  })

  test('says in each section what to do or what it means, in a sentence of its own', () => {
    const meanings = errorCodes as Record<string, string>
    const short = sections.filter(({ name, words }) => words.trim().length < 40 || words.trim() === meanings[name])
    expect(short).toEqual([])
  })

  test('has the sections that messages of commands name', () => {
    const named = names.flatMap(
      (reason) => sectionOf(new Failure('conflict', 'no', { reason: reason as FailureReason })) ?? [],
    )
    expect(named.filter((one) => !one.startsWith('docs/troubleshooting.md#'))).toEqual([])
    expect(named.filter((one) => !anchorsOf(page).includes(one.split('#')[1] ?? ''))).toEqual([])
    expect(named.length).toBeGreaterThan(75)
  })
})

test('a message named a page that the package did not have', () => {
  const { files } = JSON.parse(read('package.json')) as { files: string[] }
  const sources = readdirSync(file('src'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  // A comment is no message.
  const codeOf = (name: string) => read(`src/${name}`).replaceAll(/^\s*(\*|\/\*|\/\/).*$/gm, '')
  const named = sources.flatMap((name) => codeOf(name).match(/\bdocs\/[\w/-]+\.md\b/g) ?? [])
  expect([...new Set(named)].filter((name) => !files.includes(name) || !existsSync(file(name)))).toEqual([])
  expect(named).toContain('docs/troubleshooting.md')
})

test('the page on security led out of the package', () => {
  const { files } = JSON.parse(read('package.json')) as { files: string[] }
  const linked = linksOf(read('SECURITY.md')).map(({ to }) => to)
  expect(files).toContain('SECURITY.md')
  expect(linked.filter((to) => !files.includes(to))).toEqual([])
  expect(linked.length).toBeGreaterThan(0)
})

describe('CONTRIBUTING', () => {
  test('walks along files', () => {
    const walks = read('CONTRIBUTING.md').split('## Three walks')[1]?.split('\n## ')[0] ?? ''
    const named = walks
      .split('\n\n**')
      .slice(1)
      .map((walk) => walk.match(/`src\/[^`]+`/g)?.length ?? 0)
    expect(named.map((count) => count >= 5)).toEqual([true, true, true])
  })

  test('maps every room', () => {
    const map = read('CONTRIBUTING.md').split('## The map')[1]?.split('## ')[0] ?? ''
    const rooms = readdirSync(file('src'), { withFileTypes: true }).filter((entry) => entry.isDirectory())
    expect(rooms.map((room) => room.name).filter((room) => !new RegExp(`\\b${room}\\b`).test(map))).toEqual([])
  })
})

describe('the page on configuration', () => {
  const page = read('docs/configuration.md')

  test('shows a configuration that is accepted', () => {
    const [example] = blocks(page, 'json').filter((text) => text.includes('baseUrl'))
    expect(configShape.safeParse(JSON.parse(example ?? '')).error).toBeUndefined()
  })

  test('names every setting with its true default', () => {
    const defaults = configShape.parse({
      supplier: { baseUrl: 'https://a.example/v1' },
      stores: storeKinds.map(({ kind, settings }, index) => {
        const address = `https://${kind}.example/`
        const bare = { id: `a-1234567${index}`, kind, name: kind, callbackUrl: address, url: address }
        return Object.fromEntries(Object.entries(bare).filter(([name]) => name in settings.shape))
      }),
    })
    expect(leaves(configShape).length).toBeGreaterThan(15)
    for (const name of leaves(configShape)) {
      const row = page.split('\n').find((line) => line.startsWith('|') && line.includes(`\`${name}\``))
      expect(row, name).toBeDefined()
      const value = name.split('.').reduce<unknown>((at, key) => {
        const record = at as Record<string, unknown>
        return key.endsWith('[]') ? Object.assign({}, ...(record[key.slice(0, -2)] as object[])) : record[key]
      }, defaults)
      const store = ['id', 'kind', 'name', 'callbackUrl', 'currency', 'url', 'statuses'].map(
        (field) => `stores[].${field}`,
      )
      const given = ['supplier.baseUrl', ...store]
      if (!given.includes(name)) {
        const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
        const shown = row?.includes(`\`${text}\``) || row?.includes(`\`"${text}"\``)
        expect(shown, `${name} is ${text}, not ${row}`).toBe(true)
      }
    }
  })
})

describe('the pages on stores', () => {
  /** What the pages lack of a kind. */
  const lackingOf = ({ kind, settings }: StoreKind): string[] => {
    const rows = read('docs/configuration.md')
      .split('\n')
      .filter((line) => line.startsWith('| `stores'))
    const ofKind = rows.find((row) => row.startsWith('| `stores[].kind`')) ?? ''
    const named = (name: string) => rows.some((row) => new RegExp(`\`stores\\[\\]\\.${name}[\`.]`).test(row))
    const lacking = {
      [`docs/stores/${kind}.md`]: existsSync(file(`docs/stores/${kind}.md`)),
      'its row in docs/configuration.md': ofKind.includes(`\`${kind}\``) && ofKind.includes(`(stores/${kind}.md)`),
      'README.md': read('README.md').includes(`(docs/stores/${kind}.md)`),
      ...Object.fromEntries(Object.keys(settings.shape).map((name) => [name, named(name)])),
    }
    return Object.entries(lacking).flatMap(([what, is]) => (is ? [] : [what]))
  }

  test.each(storeKinds.map((one) => [one.kind, one]))('have a page and settings of the kind %s', (_, kind) => {
    expect(lackingOf(kind)).toEqual([])
  })

  test('lack those of a fourth kind, which has none', () => {
    const rows = ['its row in docs/configuration.md', 'README.md', 'shelf']
    expect(lackingOf(corner)).toEqual(['docs/stores/corner.md', ...rows])
  })
})

describe('the page on the API', () => {
  test('lists every endpoint, and none that is not there', () => {
    const named = [...read('docs/api.md').matchAll(/`(GET|POST|DELETE) \/api\/v1(\/[^`]*)`/g)].map(
      ([, method, at]) => `${method} ${at}`,
    )
    const real = apiOperations({ ordering: {} } as ApiContext).map(
      ({ method, path: at }) => `${method.toUpperCase()} ${at}`,
    )
    expect(named.toSorted()).toEqual([...real, 'GET /openapi.json'].toSorted())
  })
})

describe('the page on exports', () => {
  test('explains every column, in their order', () => {
    const rows = [...read('docs/exports.md').matchAll(/^\| `(\w+)` \| (.*) \|$/gm)].map(([, name, has]) => [name, has])
    const columns = [orderColumns, keyColumns, earningColumns, deliveryColumns, bodyColumns].flatMap((some) =>
      Object.entries(some),
    )
    expect(rows).toEqual(columns)
  })
})

describe('the dialect page', () => {
  const page = read('docs/dialect.md')

  test('explains every field', () => {
    expect(leaves(dialectShape).length).toBeGreaterThan(60)
    for (const name of leaves(dialectShape)) {
      const known = name.startsWith('signature.timestamp') ? 'signature.timestamp' : name
      expect(page, name).toContain(`\`${known}\``)
    }
  })

  test('explains every kind of error', () => {
    for (const kind of errorKinds) expect(page, kind).toContain(`\`${kind}\``)
  })
})

test('no page said what a delivery of the supplier is signed over: one that is made by hand is read as those of the API', () => {
  const commands = blocks(read('docs/fitting-a-supplier.md'), 'sh').find((text) => text.includes('openssl')) ?? ''
  const folder = path.dirname(databaseFile())
  writeFileSync(path.join(folder, 'secret.txt'), 'a-secret-of-the-webhook-of-the-supplier\n', { mode: 0o600 })
  const entry = file('src/quayside.js')
  const script = commands.replace('npx quayside', `"${process.execPath}" "${entry}"`)
  const { stdout, stderr } = spawnSync('sh', ['-c', script], { cwd: folder, encoding: 'utf8' })
  expect(stderr).toBe('')
  const { signature } = JSON.parse(read('config/dialects/reseller-v1.1.json'))
  const found = JSON.parse(stdout.slice(stdout.indexOf('{'), stdout.lastIndexOf('}') + 1))
  expect(found.signature ?? found).toEqual(signature)
})

describe('the listings on the page for backends', () => {
  const page = read('docs/stores/backend.md')
  const json = (word: string) => JSON.parse(blocks(page, 'json').find((text) => text.includes(word)) ?? '')
  const shapes = callbacks.find(({ type }) => type === 'listings.changed')

  test('are shown as they are sent, and the answer as it is read', async () => {
    expect(shapes?.data.safeParse(json('listings.changed').data).error).toBeUndefined()
    expect(shapes?.answer?.safeParse(json('"results"')).error).toBeUndefined()
    const answers = await readListingAnswer(Readable.from([Buffer.from(JSON.stringify(json('"results"')))]))
    expect(answers).toMatchObject([
      { id: 'GAM-RAIL4', ok: true, price: '24.90', stock: 12 },
      { id: 'GAM-OLD', ok: false, reason: 'no such variant' },
    ])
  })

  test('are taken by the receiver of the page, each in its newest state', async () => {
    const script = path.join(path.dirname(databaseFile()), 'take.mjs')
    writeFileSync(script, blocks(page, 'js').find((text) => text.includes('takeListings')) ?? '')
    const { takeListings } = (await import(script)) as {
      takeListings: (kept: Map<string, { price: string }>, listings: object[]) => { results: ItemAnswer[] }
    }
    const { listings } = json('listings.changed').data as {
      listings: { id: string; price: string; revision: number }[]
    }
    const [sent] = listings as [Sent & { revision: number }]
    const kept = new Map<string, { price: string }>()
    const [answer] = takeListings(kept, listings).results
    expect(acknowledgementOf(sent, answer)).toEqual({ outcome: 'confirmed' })
    takeListings(kept, [{ ...sent, price: '1.00', revision: sent.revision - 1 }])
    expect(kept.get(sent.id)?.price).toBe('24.90')
    takeListings(kept, [{ ...sent, price: '26.90', revision: sent.revision + 1 }])
    expect(kept.get(sent.id)?.price).toBe('26.90')
  })
})

describe('the page for shops of Shopify', () => {
  const page = read('docs/stores/shopify.md')

  test('names the access scopes that stores add wants of an app', () => {
    expect(page).toContain(`   ${scopesFor('publish').join(',')}\n`)
    expect(page).toContain('The last one is for `create: "publish"` alone')
  })

  test('prints in mails what Quayside puts on orders', () => {
    const [lines = ''] = blocks(page, 'liquid')
    const { texts } = keysOnOrder([{ key: 'keys_1', value: 'Game\nAAAA', compareDigest: '' }])
    expect(texts, 'the names that the lines make are those of metafields with keys').toHaveLength(1)
    expect(lines).toContain("'keys_' | append: number")
    expect(lines).toContain(`(1..${METAFIELDS_MAX})`)
    const own = 'app--123456--quayside'
    const metafields = { [own]: { keys_1: { value: 'Game\nA<1' }, keys_12: { value: 'Game\nB' } } }
    expect(textOf(rendered(lines, { order: { metafields } }))).toBe('Game\nA<1\nGame\nB')
    expect([...lines.matchAll(/metafields\['([^']+)'\]/g)].map(([, name]) => name)).toEqual(
      Array(2).fill(APP_NAMESPACE.replace('$app:', 'app--123456--')),
    )
  })

  test('has each setting of this kind with its default', () => {
    const {
      id: _,
      kind: __,
      name: ___,
      ...settings
    } = shopify.settings.parse({
      id: 'a-12345678',
      kind: 'shopify',
      name: 'a',
      url: 'https://a.myshopify.com',
    })
    for (const [key, value] of Object.entries(settings).filter(([key]) => !(key in everyStore) && key !== 'url')) {
      expect(page).toContain(`| \`${key}\` | \`${JSON.stringify(value)}\` |`)
    }
  })
})

describe('the page for people on duty', () => {
  const operations = read('docs/operations.md')
  const page = pages
    .filter((name) => name !== 'CHANGELOG.md')
    .map(read)
    .join('')

  test('says for every way into a review what to do about it', () => {
    const rows = operations.split('\n').filter((line) => line.startsWith('| '))
    const isNamed = (way: WayIntoReview) =>
      rows.some((row) => row.split('|')[1]?.includes(`${alertWords[way]} (\`${way}\`)`))
    expect(waysIntoReview.filter((way) => !isNamed(way))).toEqual([])
    expect(waysIntoReview.length).toBeGreaterThan(10)
  })

  test('explains every decision', () => {
    const options = { adopt: '--adopt <order>', hand_over: '--hand-over', close: '--close', buy_again: '--buy-again' }
    for (const type of decisionTypes) expect(operations, type).toContain(`| \`${options[type]}\` |`)
  })

  const commands = [...page.matchAll(/`(?:npx )?quayside ([a-z]+(?:-[a-z]+)*(?: [a-z]+(?:-[a-z]+)*(?![\w.]))?)/g)].map(
    ([, words]) => words ?? '',
  )

  test.each([...new Set(commands)])('names a command that there is: %s', async (words) => {
    const out = new PassThrough()
    const io = { stdin: new PassThrough(), stdout: out, stderr: out, env: {}, isTerminal: false, columns: 80 }
    const outside = {
      now: Date.now,
      sleep: async () => {},
      random: Math.random,
      randomBytes,
      stopSignal: async () => {},
    }
    const exitCode = await runCommand([...words.split(' '), '--help'], { ...io, ...outside })
    expect(exitCode).toBe(0)
    expect(String(out.read())).toContain(`Usage: quayside ${words}`)
  })
})

describe('the page on the sandbox', () => {
  const page = read('docs/sandbox.md')

  test('names every control, and what it does', () => {
    const rows = controls.map(({ call, does }) => `| \`${call.replace(' /', ' /sandbox/')}\` | ${does}`)
    expect(rows.filter((row) => !page.includes(row))).toEqual([])
  })

  test('names every fault, what it does and the options that it reads', () => {
    const rows = Object.entries(faultTable).map(([name, { does, ...more }]) => {
      const options = 'options' in more ? more.options.map((option) => `\`${option}\``).join(', ') : ''
      return `| \`${name}\` | ${does} | ${options}`
    })
    expect(rows.filter((row) => !page.includes(row))).toEqual([])
  })

  test('names every option, what it means and its default', () => {
    const rows = [...faultOptions, ...matchFields].map(({ name, does }) => `| \`${name}\` | ${does} |`)
    expect(rows.filter((row) => !page.includes(row))).toEqual([])
  })

  test('names nothing that is not there', () => {
    const named = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name = '']) => name)
    const known = [
      ...controls.map(({ call }) => call.replace(' /', ' /sandbox/')),
      ...Object.keys(faultTable),
      ...[...faultOptions, ...matchFields].map(({ name }) => name),
    ]
    expect(named.filter((name) => !known.includes(name))).toEqual([])
  })
})

describe('the page on reliability', () => {
  const lines = read('docs/reliability.md').split('\n')
  const rows = lines.filter((line) => line.startsWith('|') && line.includes('`n'))
  const promised = lines.flatMap((line) => /^(\d+)\. \*\*/.exec(line)?.[1] ?? [])

  test('names a test for each promise, and a promise for each test', () => {
    // Ranges such as "1 to 6" are written with both ends.
    const held = rows.map((row) => {
      const cell = row.split('|').at(-2) ?? ''
      const [, from, to] = /(\d+) to (\d+)/.exec(cell) ?? []
      if (!from || !to) return cell.match(/\d+/g) ?? []
      return Array.from({ length: Number(to) - Number(from) + 1 }, (_, place) => String(Number(from) + place))
    })
    expect(held.filter((numbers) => numbers.length === 0)).toEqual([])
    expect([...new Set(held.flat())].sort()).toEqual([...promised].sort())
  })

  test('shows commands that are there', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const commands = rows.map((row) => /`(n[^`]+)`/.exec(row)?.[1] ?? '')
    expect(commands.length).toBeGreaterThan(8)
    for (const command of commands) {
      const [, script] = /^npm run (?:-s )?(\S+)/.exec(command) ?? []
      const [, testFile] = /^npx vitest run (\S+)/.exec(command) ?? []
      if (script) expect(Object.keys(scripts), command).toContain(script)
      else expect(read(testFile ?? ''), command).not.toBe('')
    }
  })
})
