import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { mistakes, variants, withEdit } from './mistakes/list.ts'

const root = new URL('../../', import.meta.url)

describe('a seeded mistake', () => {
  test.each([...mistakes, ...variants])('$name fits the program as it is', ({ edits }) => {
    for (const edit of edits) {
      const text = readFileSync(new URL(`src/${edit.file}`, root), 'utf8')
      expect(withEdit(text, edit)).not.toBe(text)
    }
  })

  test('has a name of its own', () => {
    const names = [...mistakes, ...variants].map(({ name }) => name)
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
  })

  test('that the program has outgrown is refused', () => {
    const edit = { file: 'domain/money.ts', find: 'once', replace: 'twice' }
    expect(() => withEdit('nothing', edit)).toThrow('src/domain/money.ts has this nowhere: once')
    expect(() => withEdit('once and once', edit)).toThrow('src/domain/money.ts has this more than once: once')
  })

  test('is in the program that is started with it, and only then', () => {
    const refusal = { outcome: 'rejected', reason: 'other' }
    const script = `
      import { transition } from './src/domain/purchase.ts'
      import { purchaseIn } from './test/support/facts.ts'
      const answer = ${JSON.stringify({ type: 'answer', answer: refusal, notBefore: 0 })}
      console.log(transition(purchaseIn('sending', { maybeChargedAt: 1 }), answer, 2).next)`
    const started = (mistake: string) =>
      execFileSync(
        process.execPath,
        ['--import', './test/campaigns/mistakes/register.ts', '--input-type=module', '--eval', script],
        { cwd: root, env: { ...process.env, QUAYSIDE_MISTAKE: mistake }, encoding: 'utf8' },
      ).trim()
    expect(started('trusted-rejection')).toBe('rejected')
    expect(started('')).toBe('unknown')
  })
})
