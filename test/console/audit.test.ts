import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { auditWords } from '../../src/console/audit.ts'
import { audited } from '../../src/storage/evidence.ts'
import { openApi } from '../support/api-world.ts'
import { peopleOf } from '../support/console-data.ts'

const worldOf = async () => {
  const world = await openApi()
  const write = (actor: string, action: string, subject: string, detail?: string) =>
    world.db.commit([audited(world.access, actor, action, subject, detail)])
  return { ...world, ...peopleOf(world), write }
}

test('every action that the program writes down has its words', () => {
  const root = path.join(import.meta.dirname, '../../src')
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const actions = files.flatMap((file) => {
    const text = readFileSync(path.join(root, file), 'utf8')
    const calls = text.matchAll(/audited\([^';=]*'([a-z]+(?:[._][a-z_]+)*)'|\baction: '([a-z]+(?:[._][a-z_]+)*)'/g)
    return [...calls].map(([, one, other]) => one ?? other ?? '')
  })
  expect(actions.length).toBeGreaterThan(20)
  expect(actions.filter((action) => !(action in auditWords) && action !== 'get')).toEqual([])
})

test('says who did what last, and shows each entry with its reason, escaped', async () => {
  const world = await worldOf()
  await world.write('anna (token 01k)', 'freeze', 'buying', '<b>prices</b> look wrong')
  const { text } = await world.page('viewer', '/audit')
  expect(text).toContain('The last: mira signed in')
  expect(text).toContain('froze buying')
  expect(text).toContain('&lt;b&gt;prices&lt;/b&gt; look wrong')
  expect(text).toContain('href="/audit?actor=anna"')
})

test('shows a name with brackets as it is: no name looks like the session of another person', async () => {
  const world = await worldOf()
  await world.write('anna (console 01k) (token 02x)', 'freeze', 'buying')
  const { text } = await world.page('viewer', '/audit')
  expect(text).toContain(`href="/audit?actor=${encodeURIComponent('anna (console 01k)')}"`)
})

test('filters by actor, whatever session or token it came by, by action and by subject', async () => {
  const world = await worldOf()
  await world.write('anna (token 01k)', 'freeze', 'buying', 'first')
  await world.write('anna (console 01m)', 'unfreeze', 'buying', 'second')
  await world.write('anna', 'backup', 'a.backup', 'third')
  await world.write('annabel (token 01n)', 'freeze', 'buying', 'fourth')
  const found = async (query: string) => {
    const { text } = await world.page('viewer', `/audit?${query}`)
    return ['first', 'second', 'third', 'fourth'].filter((word) => text.includes(`>${word}<`))
  }
  expect(await found('actor=anna')).toEqual(['first', 'second', 'third'])
  expect(await found('action=freeze')).toEqual(['first', 'fourth'])
  expect(await found('subject=a.backup')).toEqual(['third'])
  expect(await found('actor=anna&action=freeze')).toEqual(['first'])
  expect((await world.page('viewer', '/audit?actor=nemo')).text).toContain('No entry matches')
})

test('goes on to older entries with the same filters', async () => {
  const world = await worldOf()
  for (let count = 0; count < 51; count += 1) await world.write('anna', 'freeze', 'buying', `reason ${count}`)
  const { text } = await world.page('viewer', '/audit?actor=anna')
  expect(text).toContain('>reason 50<')
  expect(text).not.toContain('>reason 0<')
  const [, next = ''] = /href="([^"]+)" rel="next"/.exec(text) ?? []
  const older = (await world.page('viewer', next.replaceAll('&amp;', '&'))).text
  expect(older).toContain('>reason 0<')
  expect(older).not.toContain('>reason 1<')
})
