/** The handler that people write: verify, insert unless it is there, one commit for each delivery. The bench's yardstick. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import Connection from 'better-sqlite3'
import express, { type Express } from 'express'
import getRawBody from 'raw-body'

export function plainHandler(file: string, secret: string): Express {
  const db = new Connection(file)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.exec('create table deliveries (id text primary key, body blob not null, received_at integer not null)')
  const insert = db.prepare('insert into deliveries (id, body, received_at) values (?, ?, ?) on conflict do nothing')
  const app = express()
  app.post('/webhooks/supplier', async (request, response) => {
    const body = await getRawBody(request, { limit: 262_144 })
    const timestamp = request.get('x-service-timestamp') ?? ''
    const expected = createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest()
    const given = Buffer.from(request.get('x-service-signature') ?? '', 'hex')
    const fresh = Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300
    if (!fresh || given.length !== 32 || !timingSafeEqual(given, expected)) return void response.sendStatus(401)
    insert.run(request.get('x-service-delivery-id') ?? '', body, Date.now())
    response.json({ success: true })
  })
  return app
}
