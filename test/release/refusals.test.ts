import { expect, test } from 'vitest'
import { partOf, released, unreleasedPart } from './changelog.ts'
import { refusals, type Standing } from './refusals.ts'

const standing = (other: Partial<Standing> = {}): Standing => ({
  version: '0.2.0',
  present: '0.1.0',
  branch: 'main',
  changed: [],
  tags: [],
  changes: '- Something.',
  ...other,
})

test.each<[what: string, standing: Partial<Standing>]>([
  ['a higher version', { tags: ['v0.1.0'] }],
  ['the first one, which package.json has already', { version: '0.1.0' }],
  ['a version that is higher by its number and not by its text', { version: '0.10.0', tags: ['v0.9.0', 'v0.2.0'] }],
  ['one after tags that are no versions', { tags: ['vendored', 'v1', 'v1.2.3-rc.1'] }],
])('%s may be released', (_, other) => {
  expect(refusals(standing(other))).toEqual([])
})

test.each<[what: string, standing: Partial<Standing>, reason: string]>([
  ['no version', { version: 'v0.2.0' }, 'v0.2.0 is no version: write three numbers, such as 0.2.0'],
  ['a part of a version', { version: '0.2' }, '0.2 is no version: write three numbers, such as 0.2.0'],
  ['a lower version', { version: '0.0.9' }, '0.0.9 is too low, as package.json has 0.1.0: choose a higher one'],
  ['the last version', { tags: ['v0.2.0'] }, '0.2.0 is too low, as 0.2.0 is released already: choose a higher one'],
  [
    'one before the last',
    { tags: ['v0.10.0'] },
    '0.2.0 is too low, as 0.10.0 is released already: choose a higher one',
  ],
  ['another branch', { branch: 'mine' }, 'the branch is mine: git switch main'],
  ['no branch', { branch: '' }, 'the branch is none: git switch main'],
  ['files that changed', { changed: [' M a', '?? b'] }, '2 files are not committed: commit or stash them (git status)'],
  ['no news', { changes: '' }, 'CHANGELOG.md has nothing below "## Unreleased": say there what users would notice'],
])('%s may not be released', (_, other, reason) => {
  expect(refusals(standing(other))).toEqual([reason])
})

test('the changelog has what is not released, then the versions', () => {
  const before = '# Changelog\n\n## Unreleased\n\n### Orders\n\n- New.\n\n## 0.1.0 - 2026-01-01\n\n- Old.\n'
  expect(unreleasedPart(before)).toBe('### Orders\n\n- New.')
  const after = released(before, '0.2.0', '2026-03-01')
  expect(after).toContain('## Unreleased\n\n## 0.2.0 - 2026-03-01\n\n### Orders')
  expect([unreleasedPart(after), partOf(after, '## 0.2.0'), partOf(after, '## 0.1.0')]).toEqual([
    '',
    '### Orders\n\n- New.',
    '- Old.',
  ])
  expect(partOf(after, '## 0.3.0')).toBe('')
})
