/**
 * The part of Shopify's Admin schema that our documents reach.
 *
 * `npm run shopify-schema` writes the part of each version to `test/fixtures/shopify`.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import {
  buildSchema,
  type GraphQLArgument,
  GraphQLEnumType,
  type GraphQLField,
  type GraphQLInputField,
  GraphQLInputObjectType,
  type GraphQLNamedType,
  GraphQLScalarType,
  type GraphQLSchema,
  GraphQLUnionType,
  getNamedType,
  isInterfaceType,
  isObjectType,
  isSpecifiedScalarType,
  NoDeprecatedCustomRule,
  parse,
  print,
  specifiedRules,
  TypeInfo,
  validate,
  visit,
  visitWithTypeInfo,
} from 'graphql'
import * as documents from '../../src/stores/shopify/documents.ts'

/** Versions that the adapter may be set to. */
export const schemaVersions = ['2026-04', '2026-07', '2026-10'] as const
export type SchemaVersion = (typeof schemaVersions)[number]

export const REWRITE = 'run `npm run shopify-schema`'

export const schemaFile = (version: SchemaVersion): string =>
  path.resolve(import.meta.dirname, `../fixtures/shopify/admin-${version}.graphql`)

/** Every document of the adapter by the name of its operation. */
export const shopDocuments: Map<string, string> = new Map(
  Object.values(documents)
    .filter((one) => typeof one === 'object')
    .map(({ name, text }) => [name, text]),
)

/** The schema as the file has it: its scalars refuse an answer that Shopify would not write so. */
export function readSchema(version: SchemaVersion): GraphQLSchema {
  const schema = buildSchema(readFileSync(schemaFile(version), 'utf8'), { assumeValid: true })
  for (const [name, pattern] of Object.entries(scalarTexts)) {
    const scalar = schema.getType(name)
    if (!(scalar instanceof GraphQLScalarType)) continue
    scalar.serialize = (value) => {
      if (typeof value === 'string' && pattern.test(value)) return value
      throw new TypeError(`${JSON.stringify(value)} is no ${name}`)
    }
  }
  return schema
}
const scalarTexts: Record<string, RegExp> = {
  DateTime: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
  Decimal: /^-?\d+\.\d+$/,
  Money: /^-?\d+(\.\d+)?$/,
  UnsignedInt64: /^\d+$/,
  URL: /^https?:\/\//,
}

/** What is wrong with a document by a schema; empty when nothing is. */
export function faultsOf(schema: GraphQLSchema, text: string): string[] {
  return validate(schema, parse(text), [...specifiedRules, NoDeprecatedCustomRule]).map(({ message }) => message)
}

/** The part of a schema that documents reach, as text that depends on nothing else. Input types are whole. */
export function reachedSchema(schema: GraphQLSchema, texts: string[]): string {
  const fields = new Map<string, Set<string>>()
  const given = new Map<string, Set<string>>()
  const types = new Map<string, GraphQLNamedType>()
  const directives = new Set<string>()

  const add = (type: GraphQLNamedType): void => {
    if (types.has(type.name) || isSpecifiedScalarType(type)) return
    types.set(type.name, type)
    if (type instanceof GraphQLInputObjectType) for (const field of inputFields(type)) add(getNamedType(field.type))
  }
  const reach = (type: GraphQLNamedType, field: GraphQLField<unknown, unknown>): void => {
    if (field.name.startsWith('__')) return
    add(type)
    add(getNamedType(field.type))
    fields.set(type.name, (fields.get(type.name) ?? new Set()).add(field.name))
    for (const argument of field.args.filter(isRequired)) give(type, field, argument)
  }
  const give = (type: GraphQLNamedType, field: GraphQLField<unknown, unknown>, argument: GraphQLArgument): void => {
    const place = `${type.name}.${field.name}`
    given.set(place, (given.get(place) ?? new Set()).add(argument.name))
    add(getNamedType(argument.type))
  }
  for (const text of texts) {
    const info = new TypeInfo(schema)
    visit(
      parse(text),
      visitWithTypeInfo(info, {
        Field: () => {
          const [parent, field] = [info.getParentType(), info.getFieldDef()]
          if (parent && field) reach(parent, field)
        },
        Argument: () => {
          const [parent, field, argument] = [info.getParentType(), info.getFieldDef(), info.getArgument()]
          if (parent && field && argument && !info.getDirective()) give(parent, field, argument)
        },
        Directive: ({ name }) => void directives.add(name.value),
        InlineFragment: () => {
          const type = info.getType()
          if (type) add(getNamedType(type))
        },
      }),
    )
  }
  // An object has what its interfaces have.
  for (const type of types.values()) {
    if (!isObjectType(type)) continue
    for (const from of type.getInterfaces()) {
      for (const name of fields.get(from.name) ?? []) {
        const field = type.getFields()[name]
        if (field) reach(type, field)
      }
    }
  }
  const shown = (one: GraphQLArgument | GraphQLInputField): string => {
    const fallback = one.astNode?.defaultValue ? ` = ${print(one.astNode.defaultValue)}` : defaultOf(one)
    return `${one.name}: ${one.type}${fallback}`
  }
  const fieldText = (type: GraphQLNamedType, field: GraphQLField<unknown, unknown>): string => {
    const kept = field.args.filter(({ name }) => given.get(`${type.name}.${field.name}`)?.has(name))
    const list = kept.length > 0 ? `(${kept.map(shown).sort().join(', ')})` : ''
    const isOld = field.deprecationReason == null ? '' : ' @deprecated'
    return `  ${field.name}${list}: ${field.type}${isOld}`
  }
  const block = (head: string, lines: string[]): string =>
    lines.length === 0 ? head : `${head} {\n${lines.sort().join('\n')}\n}`
  const typeText = (type: GraphQLNamedType): string => {
    if (type instanceof GraphQLScalarType) return `scalar ${type.name}`
    if (type instanceof GraphQLEnumType) {
      const values = type.getValues().map(({ name }) => name)
      return `enum ${type.name} { ${values.sort().join(' ')} }`
    }
    if (type instanceof GraphQLInputObjectType) {
      const isOneOf = type.isOneOf ? ' @oneOf' : ''
      return block(
        `input ${type.name}${isOneOf}`,
        inputFields(type).map((one) => `  ${shown(one)}`),
      )
    }
    if (type instanceof GraphQLUnionType) {
      const members = type.getTypes().map(({ name }) => name)
      return `union ${type.name} = ${members
        .filter((name) => types.has(name))
        .sort()
        .join(' | ')}`
    }
    const own = Object.values(type.getFields()).filter(({ name }) => fields.get(type.name)?.has(name))
    const from = type
      .getInterfaces()
      .map(({ name }) => name)
      .filter((name) => types.has(name))
    const head = `${isInterfaceType(type) ? 'interface' : 'type'} ${type.name}`
    const implemented = from.length > 0 ? ` implements ${from.sort().join(' & ')}` : ''
    return block(
      `${head}${implemented}`,
      own.map((field) => fieldText(type, field)),
    )
  }
  const roots = [
    ['query', schema.getQueryType()],
    ['mutation', schema.getMutationType()],
  ] as const
  const kept = roots.flatMap(([name, type]) => (type && types.has(type.name) ? [`  ${name}: ${type.name}`] : []))
  const declared = schema
    .getDirectives()
    .filter(({ name }) => directives.has(name) && name !== 'skip' && name !== 'include')
    .map(({ name, args, locations }) => `directive @${name}(${args.map(shown).join(', ')}) on ${locations.join(' | ')}`)
  const all = [...types.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  return `${[block('schema', kept), ...declared.sort(), ...all.map(typeText)].join('\n\n')}\n`
}

const isRequired = ({ type, defaultValue }: GraphQLArgument): boolean =>
  String(type).endsWith('!') && defaultValue === undefined

/** A field that Shopify means to drop is left out: what uses it does not fit. */
const inputFields = (type: GraphQLInputObjectType): GraphQLInputField[] =>
  Object.values(type.getFields()).filter(({ deprecationReason }) => deprecationReason == null)

/** An introspection has defaults as values of JavaScript. */
function defaultOf({ type, defaultValue }: GraphQLArgument | GraphQLInputField): string {
  if (defaultValue === undefined) return ''
  const isEnum = getNamedType(type) instanceof GraphQLEnumType
  const text = JSON.stringify(defaultValue)
  return ` = ${isEnum ? text.replaceAll('"', '') : text}`
}
