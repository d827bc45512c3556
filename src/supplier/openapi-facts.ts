import { valueAt } from './dialect.ts'

/**
 * The version that an OpenAPI description states for its API, `info.version`.
 *
 * @param document what GET /openapi answered, parsed
 * @returns undefined when it is no OpenAPI 3.1 description or states no version of up to 50 characters
 * @see OpenAPI Specification 3.1, section 4.8.2, Info Object
 */
export function apiVersion(document: unknown): string | undefined {
  const openapi = valueAt(document, 'openapi')
  const version = valueAt(document, 'info.version')
  if (typeof openapi !== 'string' || !/^3\.1(\.\d+)?$/.test(openapi)) return undefined
  return typeof version === 'string' && /^[\x20-\x7e]{1,50}$/.test(version) ? version : undefined
}
