/** Parts of the views of the API. The input of a view is a value from storage or a flow, and its output is the answer. */
import { z } from 'zod'
import { type Label, meansOf } from '../../domain/labels.ts'
import { formatDecimal } from '../../domain/money.ts'

/** Epoch milliseconds, shown as ISO 8601 text. */
export const at = z
  .number()
  .transform((ms) => new Date(ms).toISOString())
  .pipe(z.string().meta({ format: 'date-time', examples: ['2026-03-01T09:30:00.000Z'] }))
export const maybeAt = at.nullable()
export const words = z.string().nullable()
export const count = z.int().min(0)
export const counts = z.record(z.string(), count)
export const currency = z.string().meta({ description: 'ISO 4217', examples: ['EUR'] })
export const amount = z.string().meta({ description: 'Decimal text in the currency beside it', examples: ['19.99'] })

export const finding = z.object({
  check: z.string().meta({ description: 'What was tried', examples: ['connection'] }),
  state: z.enum(['ok', 'doubtful', 'failed']),
  detail: z.string(),
  fix: words.describe('What to do; null where nothing is to be done'),
})

/** Makes the shape of an object that is a named component of the OpenAPI document. */
export const component = <S extends z.core.$ZodLooseShape>(id: string, shape: S) => z.object(shape).meta({ id })

export const meaningsText = (means: Record<string, string>): string =>
  Object.entries(means)
    .map(([word, text]) => `- \`${word}\`: ${text}`)
    .join('\n')

export const enumeration = <T extends string>(id: string, labels: Record<T, Pick<Label, 'means'>>) =>
  z.enum(Object.keys(labels) as T[]).meta({ id, description: meaningsText(meansOf(labels)) })

/** Describes the text of a column that holds one of the given words. */
export const oneOf = <const T extends readonly string[]>(values: T) => z.string().pipe(z.enum(values))

/** Returns an amount as text; null where there is no amount. */
export const amountOf = <M extends number | null>(minor: M, currency: string) =>
  (minor === null ? null : formatDecimal({ minor, currency })) as M extends null ? string | null : string

/** For each column `nameMinor` of a row, a field `name`: the amount as text, null only where the column may be null. */
type Amounts<R> = {
  [Name in keyof R as Name extends `${infer Shown}Minor` ? Shown : never]: null extends R[Name] ? string | null : string
}

/** Returns a row with each amount as text in the row's currency: `amountMinor` is shown as `amount`. */
export function withAmounts<R extends { currency: string | null }>(row: R): R & Amounts<R> {
  const amounts = Object.entries<unknown>(row).flatMap(([name, minor]) =>
    name.endsWith('Minor') ? [[name.slice(0, -5), amountOf(minor as number | null, row.currency ?? '')]] : [],
  )
  return { ...row, ...Object.fromEntries(amounts) }
}

/** Makes a view whose fields differ from the fields of the shown value. Fields that the shape does not name are left out. */
export const view = <V, S extends z.ZodType>(shape: S, show: (value: V) => z.input<S>) =>
  z.pipe(z.transform<V, z.input<S>>(show as never), shape as never) as unknown as z.ZodPipe<
    z.ZodTransform<z.input<S>, V>,
    S
  >
