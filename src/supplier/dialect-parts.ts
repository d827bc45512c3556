/** Parts of the shape of a dialect: what a path, a header or an amount of it may be. */
import { z } from 'zod'

export const path = z.string().regex(/^$|^[^.]+(\.[^.]+)*$/, 'a dotted path')
export const parameter = z.string().min(1)
export const header = z.string().regex(/^[a-z0-9-]+$/, 'a header name in lower case')
export const seconds = z.number().int().positive()
/** The supplier's words for yes and no, numbers as text. Null: JSON true and false. */
export const flagWords = z.record(z.string().min(1), z.boolean()).nullable()

export const errorStatus = z
  .number()
  .int()
  .min(200)
  .max(599)
  .refine((status) => status < 300 || status >= 400, 'must be 200 to 299 or 400 to 599')

/**
 * How amounts are written. `decimal`: text "12.99"; `number`: 12.99; `minor`: 1299.
 *
 * An object with a whole amount and an exponent: the paths of the two in it, and what the exponent counts. `decimals`:
 * 15270 and 3 are 15.27. `power_of_ten`: 15270 and -3 are.
 */
export const moneyRepresentation = z.union([
  z.enum(['decimal', 'number', 'minor']),
  z.strictObject({ amount: path.min(1), exponent: path.min(1), counts: z.enum(['decimals', 'power_of_ten']) }),
])
