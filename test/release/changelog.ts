/** The changelog at a release: its part on what is not released becomes that of the version. */

const UNRELEASED = '## Unreleased'

/** What the changelog says of one version, or of what is not released; empty where it has no such part. */
export function partOf(changelog: string, heading: string): string {
  const [, after = ''] = `\n${changelog}`.split(new RegExp(`\n${heading.replaceAll('.', '\\.')}(?: .*)?\n`))
  return (after.split(/^## /m)[0] ?? '').trim()
}

export const unreleasedPart = (changelog: string): string => partOf(changelog, UNRELEASED)

/** @param date such as `2026-03-01` */
export const released = (changelog: string, version: string, date: string): string =>
  changelog.replace(new RegExp(`^${UNRELEASED}$`, 'm'), `${UNRELEASED}\n\n## ${version} - ${date}`)
