/** What claims allow, by the service's list of them at the end: as many keys in place of others, each at the store. Pure. */
import type { LedgerReport } from '../../../src/sandbox/ledger.ts'
import { lineOf, partOf } from '../../support/references.ts'
import { type ClaimDecision, type ClaimOutcome, givenFor } from './claims.ts'
import type { Loss } from './verdict.ts'

/** A claim as the service lists it at the end. */
export interface ListedClaim {
  number: number
  state: 'open' | ClaimOutcome
  /** The key that it is about. */
  key: string
  /** The store line of the key, as `order/line`. */
  line: string
  /** Our reference of the purchase that replaces the key; null where none does. */
  replacement: string | null
}

export interface ClaimEvidence {
  claims: readonly ListedClaim[]
  decisions: readonly ClaimDecision[]
  losses?: readonly Loss[]
}

const replaces = ({ outcome }: Pick<ClaimDecision, 'outcome'>): boolean => outcome !== 'refused'

/** Decisions that a database may have carried out before it was lost. */
function forgottenIn({ claims, decisions, losses = [] }: ClaimEvidence): ClaimDecision[] {
  const listed = new Set(claims.map(({ key, state }) => `${key} ${state}`))
  const lost = decisions.filter((one) => isLost(one, losses) && !listed.has(`${one.key} ${one.outcome}`))
  return [...new Map(lost.map((one) => [`${one.key} ${one.outcome}`, one])).values()]
}

const isLost = ({ at, until }: ClaimDecision, losses: readonly Loss[]): boolean =>
  losses.some(({ from, to }) => from <= until && at <= to)

const lineOfKey = (key: string): string => key.split('.').slice(0, 2).join('/')

/** How many keys each line gets in place of others. */
export interface Replaced {
  /** By claims that are listed as ended so. */
  least: (line: string) => number
  /** And by those that a lost database may have known. */
  most: (line: string) => number
  /** And bought ones alone. */
  mostBought: (line: string) => number
  /** Keys that the supplier gave by hand, and their lines. */
  given: ReadonlyMap<string, string>
}

export function replacedBy(evidence: ClaimEvidence): Replaced {
  const { claims } = evidence
  const forgotten = forgottenIn(evidence)
  const listed = claims.filter(({ state }) => state === 'bought' || state === 'adopted')
  const least = (line: string) => listed.filter((one) => one.line === line).length
  const lost = (line: string) => forgotten.filter((one) => replaces(one) && lineOfKey(one.key) === line)
  const bought = (line: string) => listed.filter((one) => one.line === line && one.state === 'bought').length
  const adopted = [
    ...listed.filter(({ state }) => state === 'adopted'),
    ...forgotten.filter(({ outcome }) => outcome === 'adopted'),
  ]
  return {
    least,
    most: (line) => least(line) + lost(line).length,
    mostBought: (line) => bought(line) + lost(line).filter(({ outcome }) => outcome === 'bought').length,
    given: new Map(adopted.map(({ key }) => [givenFor(key), lineOfKey(key)])),
  }
}

/**
 * Claims that did not end as they were decided: with two answers, or without their key at the store.
 *
 * @param deliveredKeys line -> the keys that its store got
 * @param failed line -> units that were reported to the store as failed
 */
export function brokenClaims(
  { claims, decisions, losses = [] }: ClaimEvidence,
  { keysIssued }: Pick<LedgerReport, 'keysIssued'>,
  { deliveredKeys, failed }: { deliveredKeys: Map<string, string[]>; failed: Map<string, number> },
): string[] {
  const stateOf = new Map(claims.map(({ number, state, key }) => [`${number} ${key}`, state]))
  const otherwise = decisions.flatMap((one) => {
    const { claim, key, outcome, answer } = one
    const state = stateOf.get(`${claim} ${key}`)
    if (answer !== 'done' || state === outcome || isLost(one, losses)) return []
    return [`claim ${claim} was answered as ${outcome} and is ${state ?? 'nowhere'}`]
  })
  const without = claims.flatMap(({ number, state, key, line, replacement }) => {
    if (state === 'refused') return []
    if (state === 'open') return [`claim ${number} has no end`]
    const had = new Set(deliveredKeys.get(line) ?? [])
    const part = partOf(replacement ?? '')
    const issued = Object.entries(keysIssued).flatMap(([reference, keys]) => (partOf(reference) === part ? keys : []))
    const isThere = state === 'adopted' ? had.has(givenFor(key)) : issued.some((one) => had.has(one))
    // The supplier may fail what replaces a key as it may fail anything: the store heard so.
    const hasFailed = state === 'bought' && replacement !== null && (failed.get(line) ?? 0) > 0
    return isThere || hasFailed ? [] : [`claim ${number} ended as ${state}, and the store lacks its key`]
  })
  return [...otherwise, ...without]
}

/** Lines that were charged for more units than were ordered, and bought again in place of others. */
export function chargedBeyond(
  standing: LedgerReport['charges'],
  { keysIssued }: Pick<LedgerReport, 'keysIssued'>,
  mostOf: (line: string) => number,
): string[] {
  const lines = Map.groupBy(standing, ({ externalOrderId }) => lineOf(externalOrderId ?? ''))
  return [...lines].flatMap(([line, charges]) => {
    const units = charges.reduce((sum, one) => sum + (keysIssued[one.externalOrderId ?? '']?.length || 1), 0)
    const most = mostOf(line)
    return units > most
      ? [`${line} was charged for ${units} units, and at most ${most} were ordered or bought again`]
      : []
  })
}
