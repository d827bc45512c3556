/** The settings of alerts: channels by name, each with its address as a secret, and limits with sensible defaults. */
import { mkdtempSync, rmSync, statfsSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { diskFreeMb, everyMs, limitsOf, madeAt } from '../../src/alerts/facts.ts'
import { channelAddress } from '../../src/config/alert-settings.ts'
import { loadConfig } from '../../src/config/config.ts'
import { settingsInForce } from '../../src/config/settings-in-force.ts'

const HOUR = 3_600_000
const KEYS = { QUAYSIDE_API_KEY: 'k', QUAYSIDE_KEY_ENCRYPTION_KEY: Buffer.alloc(32, 'kek').toString('base64') }

function load(alerts: object | undefined, env: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'quayside-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'quayside.json')
  writeFileSync(file, JSON.stringify({ supplier: { baseUrl: 'https://supplier.example/v1' }, stores: [], alerts }))
  return loadConfig(file, { ...KEYS, ...env })
}

test('without a setting there is no channel, and what matters is watched', () => {
  const config = load(undefined)
  expect(config.alerts.channels).toEqual({})
  expect(limitsOf(config)).toEqual({
    balanceBelowMinor: null,
    balanceDays: 3,
    syncStaleMs: 3 * HOUR,
    backupMissingMs: 48 * HOUR,
    diskFreeMb: 500,
  })
})

test('what the settings say is what counts: amounts in minor units, hours as hours', () => {
  const config = load({ balanceBelow: '12.50', balanceDays: 5, syncStaleHours: 7, diskFreeMb: 900 })
  expect(limitsOf({ ...config, backups: { ...config.backups, cron: null } })).toEqual({
    balanceBelowMinor: 1_250,
    balanceDays: 5,
    syncStaleMs: 7 * HOUR,
    backupMissingMs: null,
    diskFreeMb: 900,
  })
})

test('the room on a disk is what a program that is not root may still write, in megabytes', async () => {
  const { bavail, bsize } = statfsSync(tmpdir())
  const free = (await diskFreeMb(tmpdir())) ?? 0
  // Others write there too.
  expect(Math.abs(free - (bavail * bsize) / 1_048_576)).toBeLessThan(1_000)
  expect(await diskFreeMb(join(tmpdir(), 'no-such-folder'))).toBeNull()
})

test('an installation is as old as the folder of its data, however late something in it was changed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'quayside-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  utimesSync(folder, 1, 1)
  expect(await madeAt(folder)).toBeGreaterThan(Date.now() - 24 * HOUR)
})

test('a catalogue that is read once a day, on working days, is stale after more than its weekend', () => {
  const config = { ...load(undefined), syncCron: '0 6 * * 1-5' }
  expect(everyMs(config.syncCron)).toBeGreaterThanOrEqual(71 * HOUR)
  expect(limitsOf(config).syncStaleMs).toBeGreaterThan(72 * HOUR)
})

test('the address of a channel is a secret, and no setting in force shows it', () => {
  const config = load(
    { channels: { 'on-duty': { kind: 'slack', least: 'critical' } } },
    { QUAYSIDE_ALERT_ON_DUTY: 'https://hooks.example/T0/s3cret' },
  )
  expect(config.alertAddresses.get('on-duty')?.url.reveal()).toBe('https://hooks.example/T0/s3cret')
  expect(JSON.stringify([settingsInForce(config), config, [...config.alertAddresses]])).not.toContain('s3cret')
  expect(settingsInForce(config)).toContainEqual(
    expect.objectContaining({ name: 'alerts.channels.on-duty.kind', value: 'slack' }),
  )
})

test('every fault is listed, with what would be right', () => {
  const faulty = () =>
    load(
      {
        channels: {
          duty: { kind: 'webhook' },
          mail: { kind: 'email', from: 'q@shop.example', to: ['a@shop.example'] },
        },
        balanceBelow: '1.234',
      },
      { QUAYSIDE_ALERT_MAIL: 'mail.example' },
    )
  expect(faulty).toThrow(/QUAYSIDE_ALERT_DUTY: not set/)
  expect(faulty).toThrow(/QUAYSIDE_ALERT_MAIL: must be the address of a mail server/)
  expect(faulty).toThrow(/alerts\.balanceBelow: not an amount in EUR: 1\.234/)
  expect(() => load({ channels: { duty: { kind: 'pager' } } })).toThrow(
    /alerts\.channels\.duty\.kind: must be one of webhook, slack, email/,
  )
  expect(() => load({ channels: { 'On Duty': { kind: 'slack' } } })).toThrow(/a name of small letters/)
})

test.each([
  ['webhook', 'https://a.example/x', true],
  ['webhook', `https://a.example/x whsec_${Buffer.alloc(32).toString('base64')}`, true],
  ['webhook', `https://a.example/x whsec_${Buffer.alloc(8).toString('base64')}`, false],
  ['webhook', 'ftp://a.example/x', false],
  ['slack', 'https://a.example/x whsec_a', false],
  ['email', 'smtps://u:p@mail.example', true],
  ['email', 'smtp://mail.example:25', true],
  ['email', 'https://mail.example', false],
] as const)('%s: %s', (kind, text, isRight) => {
  expect(typeof channelAddress(kind, text) === 'object').toBe(isRight)
})
