import { listed, locate } from './check-fact.ts'
import { group } from './check-records.ts'
import { errorKinds } from './dialect.ts'
import type { Finding, Inspection } from './dialect-check.ts'
import { valuesOf } from './openapi-document.ts'

/** The envelope of errors, the codes and their statuses. */
export function errorFacts({ dialect, description }: Inspection): Finding[] {
  const { error, errors } = dialect
  const answers = description.operation('post', '/orders')?.answers.filter(({ status }) => /^[45]/.test(status)) ?? []
  const schema = answers.find((answer) => answer.schema)?.schema
  const fields = schema && description.fields(schema)
  const code = locate(fields ?? [], error.code, (field) => valuesOf(field.schema).length > 2)
  const known = code ? valuesOf(code.schema).map(String) : []
  const ours = errorKinds.flatMap((kind) => errors[kind]?.codes ?? [])
  const strange = known.filter((word) => !ours.includes(word))
  return [
    ...group('error', error, fields, { 'error.success': ({ schema: field }) => field.const === false }),
    ...errorKinds.flatMap((kind): Finding[] => {
      const facts = errors[kind]
      if (facts === null) return [{ fact: `errors.${kind}`, dialect: null, verdict: 'not_said' }]
      const { codes, status } = facts
      const fact = { fact: `errors.${kind}.codes`, dialect: codes }
      const listedThere = codes.some((word) => known.includes(word))
      const statuses = answers.filter(({ text }) => codes.some((word) => text.split(/[\s,;.]+/).includes(word)))
      return [
        known.length === 0
          ? { ...fact, verdict: 'not_said' }
          : listedThere
            ? { ...fact, verdict: 'agrees' }
            : { ...fact, verdict: 'disagrees', document: listed(strange) },
        statusFact(
          `errors.${kind}.status`,
          status,
          statuses.map((answer) => answer.status),
          answers,
        ),
      ]
    }),
  ]
}

/** Where no answer names the code, a status that no answer has disagrees all the same. */
function statusFact(fact: string, dialect: number, named: string[], all: { status: string }[]): Finding {
  const documented = all.map(({ status }) => status)
  if (named.includes(String(dialect))) return { fact, dialect, verdict: 'agrees' }
  if (named.length > 0) return { fact, dialect, verdict: 'disagrees', document: named.join(', ') }
  if (documented.length === 0 || documented.includes(String(dialect))) return { fact, dialect, verdict: 'not_said' }
  return { fact, dialect, verdict: 'disagrees', document: `no such status, but ${documented.join(', ')}` }
}
