import { tokens } from './schema.ts'
import { insertInto, rowsBy, stampOnce } from './table.ts'

export type TokenRow = typeof tokens.$inferSelect

export const tokenByDigest = rowsBy(tokens, ['digest'])

export const allTokens = rowsBy(tokens, [], tokens.createdAt, tokens.id)

export const insertToken = insertInto(tokens)

export const revokeToken = stampOnce(1, tokens, ['id'], 'revokedAt')
