/** Decides whether a version may be released, from what the repository is like. */

export interface Standing {
  /** The version that is asked for, such as `0.2.0`. */
  version: string
  /** That of `package.json`. */
  present: string
  branch: string
  /** The lines of `git status --porcelain`. */
  changed: string[]
  /** The tags of releases, such as `v0.1.0`. */
  tags: string[]
  /** What the changelog says of what is not released. */
  changes: string
}

/** @returns every reason against it, each with what to do; none when it may be released */
export function refusals({ version, present, branch, changed, tags, changes }: Standing): string[] {
  if (numbersOf(version) === undefined) return [`${version} is no version: write three numbers, such as 0.2.0`]
  const last = lastOf(tags)
  const isHigher = last === undefined ? compared(version, present) >= 0 : compared(version, last) > 0
  const floor = last === undefined ? `package.json has ${present}` : `${last} is released already`
  return [
    ...(isHigher ? [] : [`${version} is too low, as ${floor}: choose a higher one`]),
    ...(branch === 'main' ? [] : [`the branch is ${branch || 'none'}: git switch main`]),
    ...(changed.length === 0 ? [] : [`${changed.length} files are not committed: commit or stash them (git status)`]),
    ...(changes === '' ? ['CHANGELOG.md has nothing below "## Unreleased": say there what users would notice'] : []),
  ]
}

/** The highest version among tags; undefined before the first release. */
export const lastOf = (tags: string[]): string | undefined =>
  tags
    .map((tag) => tag.slice(1))
    .filter((version) => numbersOf(version) !== undefined)
    .sort(compared)
    .at(-1)

const numbersOf = (version: string): number[] | undefined =>
  /^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}$/.test(version) ? version.split('.').map(Number) : undefined

function compared(a: string, b: string): number {
  const [left = [], right = []] = [numbersOf(a), numbersOf(b)]
  const place = left.findIndex((number, index) => number !== right[index])
  return place === -1 ? 0 : (left[place] ?? 0) - (right[place] ?? 0)
}
