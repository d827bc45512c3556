/** Metafields of the Shopify shop and their definitions. */
import { createHash } from 'node:crypto'
import {
  connection,
  dateTime,
  gid,
  isFields,
  objectsIn,
  type RootFields,
  textsIn,
  type UserError,
  userErrors,
} from './shopify-answers.ts'
import type { Fields } from './shopify-graphql.ts'

export interface ShopifyMetafield {
  id: string
  /** Global id of what it stands on. */
  owner: string
  namespace: string
  key: string
  type: string
  value: string
  createdAt: number
  updatedAt: number
}

export interface ShopifyDefinition {
  id: string
  ownerType: string
  namespace: string
  key: string
  name: string
  type: string
  access: { admin: string | null; customerAccount: string; storefront: string | null }
  /** Null: staff do not see it beside an order. */
  pinnedPosition: number | null
}

interface MetafieldsOptions {
  now: () => number
  newId: () => string
  /** Number of the app, which its own namespaces have in their names. */
  appId: string
  /** Whether there is something of this global id that can have metafields. */
  hasOwner: (id: string) => boolean
  changed: (owner: string) => void
}

const SET_MAX = 25
const PINNED_MAX = 20
/** Characters of a value of text of several lines. */
const TEXT_MAX = 65_536

export function createMetafields({ now, newId, appId, hasOwner, changed }: MetafieldsOptions) {
  const metafields = new Map<string, ShopifyMetafield>()
  const definitions = new Map<string, ShopifyDefinition>()

  /** `$app` and `$app:name` are the app's own. */
  const namespaceOf = (given: unknown): string =>
    given == null || given === '$app' ? `app--${appId}` : String(given).replace(/^\$app:/, `app--${appId}--`)
  const isOwn = (namespace: string) => namespace === `app--${appId}` || namespace.startsWith(`app--${appId}--`)
  const placeOf = (owner: string, namespace: string, key: string) => `${owner} ${namespace}.${key}`
  const definitionPlace = (owner: string, namespace: string, key: string) =>
    `${owner.toUpperCase()} ${namespace}.${key}`
  const ownerTypeOf = (owner: string) => /^gid:\/\/shopify\/(\w+)\//.exec(owner)?.[1]?.toUpperCase() ?? ''

  const digestOf = ({ value, type, updatedAt }: ShopifyMetafield): string =>
    createHash('sha256').update(`${type} ${updatedAt} ${value}`).digest('hex')
  const metafieldFields = (one: ShopifyMetafield): Fields => ({
    __typename: 'Metafield',
    id: gid('Metafield', one.id),
    legacyResourceId: one.id,
    namespace: one.namespace,
    key: one.key,
    type: one.type,
    value: one.value,
    jsonValue: one.type === 'json' ? JSON.parse(one.value) : one.value,
    compareDigest: digestOf(one),
    ownerType: ownerTypeOf(one.owner),
    createdAt: dateTime(one.createdAt),
    updatedAt: dateTime(one.updatedAt),
  })
  const definitionFields = (one: ShopifyDefinition): Fields => ({
    __typename: 'MetafieldDefinition',
    id: gid('MetafieldDefinition', one.id),
    namespace: one.namespace,
    key: one.key,
    name: one.name,
    ownerType: one.ownerType,
    pinnedPosition: one.pinnedPosition,
    access: { __typename: 'MetafieldAccess', ...one.access },
    type: { __typename: 'MetafieldDefinitionType', name: one.type },
  })

  const ofOwner = (owner: string): ShopifyMetafield[] => [...metafields.values()].filter((one) => one.owner === owner)

  /** The fields by which an owner shows its metafields. */
  const ownerFields = (owner: string): Fields => ({
    metafield: ({ namespace, key }: Fields) => {
      const found = metafields.get(placeOf(owner, namespaceOf(namespace), String(key)))
      return found ? metafieldFields(found) : null
    },
    metafields: (given: Fields) => {
      const wanted = given.namespace === undefined ? undefined : namespaceOf(given.namespace)
      const keys = given.keys === undefined ? undefined : textsIn(given.keys)
      const found = ofOwner(owner).filter(
        ({ namespace, key }) =>
          (wanted === undefined || namespace === wanted) &&
          (keys === undefined || keys.includes(`${namespace}.${key}`) || keys.includes(key)),
      )
      return connection('Metafield', found, given, ({ id }) => [id], metafieldFields)
    },
  })

  const set = ({ metafields: given }: Fields): Fields => {
    const inputs = objectsIn(given)
    const type = 'MetafieldsSetUserError'
    const payload = (set: ShopifyMetafield[] | null, errors: UserError[]) => ({
      __typename: 'MetafieldsSetPayload',
      metafields: set?.map(metafieldFields) ?? null,
      userErrors: userErrors(type, errors),
    })
    if (inputs.length > SET_MAX) {
      const message = `Exceeded the maximum metafields input limit of ${SET_MAX}.`
      return payload(null, [{ code: 'LESS_THAN_OR_EQUAL_TO', field: ['metafields'], message }])
    }
    const errors: UserError[] = []
    const writes: (() => ShopifyMetafield)[] = []
    for (const [index, input] of inputs.entries()) {
      const refuse = (code: string, field: string, message: string) =>
        void errors.push({ code, field: ['metafields', String(index), field], message, elementIndex: index })
      const [owner, key, value] = [String(input.ownerId), String(input.key), String(input.value)]
      const namespace = namespaceOf(input.namespace)
      const before = metafields.get(placeOf(owner, namespace, key))
      const definition = definitions.get(definitionPlace(ownerTypeOf(owner), namespace, key))
      const valueType = input.type ?? definition?.type ?? before?.type
      if (!hasOwner(owner)) refuse('INVALID', 'ownerId', 'Owner does not exist.')
      if (namespace.startsWith('app--') && !isOwn(namespace)) {
        refuse(
          'APP_NOT_AUTHORIZED',
          'namespace',
          'Access to this namespace and key on Metafields for this resource type is not allowed.',
        )
      }
      if (!/^[\w-]{2,64}$/.test(key)) refuse('INVALID', 'key', 'Key is invalid.')
      if (!/^[\w-]{3,255}$/.test(namespace)) refuse('INVALID', 'namespace', 'Namespace is invalid.')
      if (valueType == null) refuse('BLANK', 'type', "Type can't be blank.")
      if (definition && valueType !== definition.type) {
        refuse('INVALID_TYPE', 'type', `Type must be consistent with the definition's type: '${definition.type}'.`)
      }
      if (value === '') refuse('BLANK', 'value', "Value can't be blank.")
      if (value.length > TEXT_MAX) refuse('TOO_LONG', 'value', `Value is too long (maximum is ${TEXT_MAX} characters).`)
      if (valueType === 'json' && !isJson(value)) refuse('INVALID_VALUE', 'value', 'Value is invalid JSON.')
      const digest = input.compareDigest
      if (typeof digest === 'string' && !/^[0-9a-f]{64}$/.test(digest)) {
        refuse('INVALID_COMPARE_DIGEST', 'compareDigest', 'The compareDigest is invalid.')
      } else if (digest !== undefined && digest !== (before ? digestOf(before) : null)) {
        const message =
          'The resource has been updated since it was loaded. Try again with an updated `compareDigest` value.'
        errors.push({ code: 'STALE_OBJECT', field: ['metafields', String(index)], message, elementIndex: index })
      }
      writes.push(() => {
        const kept: ShopifyMetafield = {
          id: before?.id ?? newId(),
          owner,
          namespace,
          key,
          type: String(valueType),
          value,
          createdAt: before?.createdAt ?? now(),
          updatedAt: now(),
        }
        metafields.set(placeOf(owner, namespace, key), kept)
        return kept
      })
    }
    if (errors.length > 0) return payload(null, errors)
    const written = writes.map((write) => write())
    for (const owner of new Set(written.map((one) => one.owner))) changed(owner)
    return payload(written, [])
  }

  const define = ({ definition: input }: Fields): Fields => {
    const given = isFields(input) ? input : {}
    const errors: UserError[] = []
    const refuse = (code: string, field: string, message: string) =>
      void errors.push({ code, field: ['definition', field], message })
    const [ownerType, key] = [String(given.ownerType), String(given.key)]
    const namespace = namespaceOf(given.namespace)
    const access = isFields(given.access) ? given.access : {}
    const at = definitionPlace(ownerType, namespace, key)
    const ofType = [...definitions.values()].filter((one) => one.ownerType === ownerType)
    const pinned = ofType.filter(({ pinnedPosition }) => pinnedPosition !== null).length
    if (definitions.has(at)) refuse('TAKEN', 'key', 'Key is in use for Order metafields on the namespace.')
    if (access.admin != null && !isOwn(namespace)) {
      refuse('ADMIN_ACCESS_INPUT_NOT_ALLOWED', 'access', 'Setting the admin access is not allowed for this namespace.')
    }
    if (namespace.startsWith('app--') && !isOwn(namespace)) {
      refuse('RESERVED_NAMESPACE_KEY', 'namespace', 'Namespace is reserved.')
    }
    if (!/^[\w-]{2,64}$/.test(key)) refuse('INVALID_CHARACTER', 'key', 'Key contains one or more invalid characters.')
    if (given.pin === true && pinned >= PINNED_MAX) {
      refuse('PINNED_LIMIT_REACHED', 'pin', `Limit of ${PINNED_MAX} pinned definitions.`)
    }
    const made: ShopifyDefinition = {
      id: newId(),
      ownerType,
      namespace,
      key,
      name: String(given.name),
      type: String(given.type),
      access: {
        admin: isOwn(namespace) ? String(access.admin ?? 'MERCHANT_READ_WRITE') : 'PUBLIC_READ_WRITE',
        customerAccount: String(access.customerAccount ?? 'NONE'),
        storefront: access.storefront == null ? null : String(access.storefront),
      },
      pinnedPosition: given.pin === true ? pinned + 1 : null,
    }
    if (errors.length === 0) definitions.set(at, made)
    return {
      __typename: 'MetafieldDefinitionCreatePayload',
      createdDefinition: errors.length === 0 ? definitionFields(made) : null,
      userErrors: userErrors('MetafieldDefinitionCreateUserError', errors),
    }
  }

  const root: RootFields = {
    queries: {
      metafieldDefinitions: {
        isNullable: false,
        answer: (given) => {
          const namespace = given.namespace === undefined ? undefined : namespaceOf(given.namespace)
          const found = [...definitions.values()].filter(
            (one) =>
              one.ownerType === given.ownerType &&
              (namespace === undefined || one.namespace === namespace) &&
              (given.key === undefined || one.key === given.key),
          )
          return connection('MetafieldDefinition', found, given, ({ id }) => [id], definitionFields)
        },
      },
    },
    mutations: {
      // The scope is that of what the metafield stands on: an order.
      metafieldsSet: { scope: 'write_orders', isNullable: true, answer: set },
      metafieldDefinitionCreate: { scope: 'write_orders', isNullable: true, answer: define },
    },
  }
  return {
    metafields,
    definitions,
    root,
    ofOwner,
    ownerFields,
    /** The merchant, or another app, writes a metafield. */
    put: (owner: string, namespace: string, key: string, value: string, type = 'multi_line_text_field'): void => {
      const { userErrors: errors } = set({ metafields: [{ ownerId: owner, namespace, key, value, type }] })
      const [first] = objectsIn(errors)
      if (first) throw new Error(String(first.message))
    },
    remove: (owner: string, namespace: string, key: string): void => {
      metafields.delete(placeOf(owner, namespaceOf(namespace), key))
      changed(owner)
    },
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
