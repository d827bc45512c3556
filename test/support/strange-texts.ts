/** Texts of others that break pages: put into every column of a database that holds what stores, suppliers and people wrote. */
import type Connection from 'better-sqlite3'

/** Words of 300 letters, emoji, names that are written from right to left, and one that turns round what follows it. */
export const strangeTexts = [
  'Unbreakable'.repeat(28).slice(0, 300),
  '🎮👨‍👩‍👧‍👦🇩🇪'.repeat(40),
  'مكتب مايكروسافت ٢٠٢٤ للمنزل والأعمال, 12 months',
  '\u202eturned round\u202e 1234 \u2067',
  'משחק הרפתקאות — Deluxe Edition (PC)',
  'ا'.repeat(300),
]

/** Columns whose texts come from outside, or are typed by people. */
const columns: Record<string, readonly string[]> = {
  alerts: ['note', 'acknowledged_by'],
  alert_channels: ['last_error'],
  audit: ['actor', 'detail'],
  claims: ['note', 'raised_by', 'ended_by', 'reason'],
  console_sessions: ['name'],
  deliveries: ['event', 'last_error'],
  discrepancies: ['detail'],
  listings: ['detail', 'known_name', 'known_category', 'variation', 'sent_name'],
  offers: ['name', 'category', 'description'],
  offer_changes: ['before', 'after'],
  outbox: ['last_error'],
  publishing: ['last_error'],
  purchase_attempts: ['detail', 'code', 'request_id'],
  purchases: ['note', 'failure_message', 'failure_code', 'error_text'],
  store_orders: ['number'],
  store_readings: ['last_error'],
  sweeps: ['error'],
  sync_runs: ['error', 'request_id'],
  tokens: ['name'],
  transitions: ['detail'],
}

/** Replaces the texts that are there, each row with another of the strange ones. */
export function putStrangeTexts(connection: Connection.Database): void {
  for (const [table, names] of Object.entries(columns)) {
    for (const name of names) {
      const rows = connection.prepare<[], number>(`select rowid from ${table} where ${name} is not null`).pluck().all()
      const put = connection.prepare(`update ${table} set ${name} = ? where rowid = ?`)
      for (const [index, row] of rows.entries()) put.run(strangeTexts[index % strangeTexts.length], row)
    }
  }
}
