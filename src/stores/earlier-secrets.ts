/** Stores since when the `previousSecret` of a shop is known. It stays valid for an hour, which no restart prolongs. */
import { createHash } from 'node:crypto'
import type { Database } from '../storage/database.ts'
import { jsonSetting } from '../storage/settings.ts'
import type { ShopCredentials } from './store-kind.ts'

type Seen = Record<string, { digest: string; since: number }>

const seenSecrets = jsonSetting<Seen>('earlier_secrets')

/** @returns since when each `previousSecret` is known, epoch ms, by the id of its store */
export async function earlierSecretsSince(
  { db, now }: { db: Database; now: () => number },
  stores: readonly { id: string; credentials: ShopCredentials | undefined }[],
): Promise<Map<string, number>> {
  const before = (await seenSecrets.read(db)) ?? {}
  const after: Seen = {}
  for (const { id, credentials } of stores) {
    if (!credentials?.previousSecret) continue
    const pair = [credentials.secret, credentials.previousSecret].map((one) => one.reveal()).join(':')
    const digest = createHash('sha256').update(pair).digest('base64url')
    const known = before[id]
    after[id] = known?.digest === digest ? known : { digest, since: now() }
  }
  if (JSON.stringify(after) !== JSON.stringify(before)) await db.commit([seenSecrets.put(after, now())])
  return new Map(Object.entries(after).map(([id, { since }]) => [id, since]))
}
