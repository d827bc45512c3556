import { apiOperations } from '../../src/http/api/api.ts'
import { openApiDocument } from '../../src/http/openapi.ts'
import type { ApiContext } from '../../src/http/operation.ts'

/** The document of our own API. */
export const apiDocument = openApiDocument(apiOperations({ ordering: {} } as ApiContext))
