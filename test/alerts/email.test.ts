/** Alerts by e-mail, over a mail server that takes them, refuses them or says nothing. */
import { expect, test } from 'vitest'
import type { AlertKind } from '../../src/domain/alert-kinds.ts'
import { alertChannelNamed } from '../../src/storage/alerts.ts'
import { enqueueAlert } from '../../src/storage/outbox.ts'
import { openApi } from '../support/api-world.ts'
import { startSmtpServer } from '../support/smtp-server.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

async function openMail({ host = '127.0.0.1' } = {}) {
  const smtp = await startSmtpServer()
  const world = await openApi({
    alerts: {
      channels: { mail: { kind: 'email', from: 'quayside@shop.example', to: ['a@shop.example', 'b@shop.example'] } },
    },
    alertAddresses: { QUAYSIDE_ALERT_MAIL: smtp.url.replace('127.0.0.1', host) },
  })
  await world.alertRound()
  const raise = async (type: AlertKind, note: string) => {
    await world.db.commit([enqueueAlert(world.ordering, { type, occasion: '1', payload: { note } })])
    await world.alertRound()
  }
  const standing = async () => (await world.db.query(alertChannelNamed('mail')))[0]
  return { world, smtp, raise, standing }
}

test('a mail says what, since when and what to do, and another one that it is over', async () => {
  const { world, smtp, raise } = await openMail()
  await raise('backup_failed', 'the disk is full')
  expect(smtp.received).toHaveLength(1)
  const [mail] = smtp.received
  expect(mail?.to).toEqual(['a@shop.example', 'b@shop.example'])
  expect(mail?.text).toMatch(/^Subject: \[Quayside\] warning: backup failed\r$/m)
  expect(mail?.text).toMatch(/^Message-ID: <[0-9a-f]{32}@shop\.example>\r$/m)
  expect(mail?.text).toContain('What: the disk is full\r\nSince: 2023-11-14 22:13 UTC\r\nDo: fix what the note says')
  world.move(1)
  await world.ask('POST', '/backups')
  world.move(HOUR)
  await world.alertRound()
  expect(smtp.received[1]?.text).toMatch(/^Subject: \[Quayside\] ended: backup failed\r$/m)
})

test('a mail that the server refused at its end is sent again under the same Message-ID', async () => {
  const { world, smtp, raise, standing } = await openMail()
  const id = () => /^Message-ID: (.*)\r$/m.exec(smtp.received.at(-1)?.text ?? '')?.[1]
  smtp.refuse = { verb: 'BODY', answer: '451 try later, password s3cret-of-mail' }
  await raise('freeze', 'checking prices')
  expect(await standing()).toMatchObject({
    attempts: 1,
    lastError: expect.stringMatching(/^127\.0\.0\.1:\d+ answered 451$/),
  })
  smtp.refuse = undefined
  world.move(MINUTE)
  await world.alertRound()
  expect(smtp.received).toHaveLength(1)
  expect(id()).toMatch(/@shop\.example>$/)
  expect(await standing()).toMatchObject({ attempts: 0, failingSince: null })
})

test('a mail server that refuses the password is named, and the password is not', async () => {
  const { smtp, raise, standing } = await openMail()
  smtp.refuse = { verb: 'AUTH', answer: '535 wrong: s3cret-of-mail' }
  await raise('freeze', 'checking prices')
  expect((await standing())?.lastError).toMatch(/^127\.0\.0\.1:\d+ refuses user or password$/)
})

test('a mail that is refused for one of its addresses came to the other again and again', async () => {
  const { world, smtp, raise, standing } = await openMail()
  smtp.refuse = { verb: 'RCPT', about: 'b@shop.example', answer: '550 unknown' }
  await raise('freeze', 'checking prices')
  for (let tries = 0; tries < 10; tries += 1) {
    world.move(5 * MINUTE)
    await world.alertRound()
  }
  expect(smtp.received.map(({ to }) => to)).toEqual([['a@shop.example']])
  expect((await standing())?.lastError).toMatch(/ refuses 1 of 2 addresses$/)
})

test('a mail server on another machine that offers no encryption is sent no password and no mail', async () => {
  // Linux connects to this machine, whose name it is not.
  const { smtp, raise, standing } = await openMail({ host: '0.0.0.0' })
  await raise('freeze', 'checking prices')
  expect(smtp.connections).toBe(1)
  expect(smtp.received).toEqual([])
  expect((await standing())?.lastError).toMatch(
    /^0\.0\.0\.0:\d+ offers no encryption, without which no password is sent$/,
  )
})
