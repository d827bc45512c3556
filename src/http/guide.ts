import { errorBody } from './answers.ts'
import { orderExample } from './input.ts'

const fault = { field: 'lines.0.quantity', message: 'must be a whole number from 1 to 10000' }
export const failureExample = errorBody(
  { code: 'invalid', message: `${fault.field}: ${fault.message}`, fields: [fault] },
  '01kb3q8z4x9r2m5t7v0w1y3a6c',
)

/** A guide for developers of a store's backend. The OpenAPI document and its page begin with this guide. */
export const guide = `Quayside buys licence keys for the paid orders of a store and hands them over. A store posts an order, and gets
its keys by callback.

## Tokens

Each request carries \`Authorization: Bearer <token>\`; each operation below says which tokens it takes.

- A **store token** speaks for one store. Its scope \`orders\` places, reads and cancels orders of that store; its scope
  \`keys\` also shows their licence keys.
- A **person's token** has a role: \`viewer\` reads, \`operator\` also decides, \`admin\` also manages tokens and secrets.

\`npx quayside tokens create\` makes one and shows its text once. 401 means that there is no valid token, 403 that it may not do this.

## Placing an order

\`\`\`sh
curl -s http://127.0.0.1:8080/api/v1/orders \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '${JSON.stringify(orderExample)}'
\`\`\`

202 means that the order is stored on disk: buying goes on by itself, also after a crash. Amounts are decimal text such as
\`"24.90"\`, never numbers. Instants are ISO 8601 in UTC.

## Idempotency

\`reference\`, your own number of the order, is the key: no header is needed. The same order under the same reference is taken
once, however often it is posted, and the sequence of its lines and fields does not matter. A repeat is answered 200 with the
order as it is now; a different order under the reference is refused with 409 \`reference_reused\`. A cancellation may be
repeated, too. Whatever asks for \`If-Match\` is done only while the record is as it was shown.

## Callbacks

A callback is a POST to the address of your store with \`{"type","timestamp","data"}\`; the webhooks of this document list the
types. It is signed by [Standard Webhooks](https://www.standardwebhooks.com) with the secret \`whsec_…\` of your store: verify the
signature over the raw body before you read it.

Store the callback, then answer 2xx within 15 seconds. After any other answer, or none, it comes again with the same
\`webhook-id\` and the same body, ten times in about three days; then an operator can redeliver it. Keep the ids that you have
seen, and answer 2xx to a repeat. The keys of a line may come in several callbacks, each key in one of them; \`complete\` says that
no more come. \`GET /orders/{reference}\` shows all keys that were handed over.

## Retries

| answer | what to do |
| --- | --- |
| none, 408, 500 or 503 | send the same again, after \`Retry-After\` or a growing pause; for an order that is always safe |
| 409, 412 | read the record again, then decide |
| 429, 502 or 504 | comes from a proxy before Quayside: as for 503 |
| any other 4xx | the same request is refused again: correct it |

Reading is always safe. An operation that creates something, such as a token, creates another one when it is repeated.

Lists give \`items\` and \`next\`; \`next\` goes into \`before\` (of listings: \`after\`) of the next request and is null on the last page.

## Errors

Every error has one shape. \`code\` is for machines ([\`ErrorCode\`](#/components/schemas/ErrorCode) lists all of them), \`message\`
for people; \`fields\` names every fault of the input. \`request_id\` is in the header \`X-Request-Id\` of every answer, too: name it
when you ask for help. The page \`docs/troubleshooting.md\` of Quayside has a section for each code, such as
\`docs/troubleshooting.md#reference_reused\`: why it comes, and what to do.

\`\`\`json
${JSON.stringify(failureExample, undefined, 2)}
\`\`\`

| status | means |
| --- | --- |
| 400 | the request or a field of it is wrong |
| 401, 403 | no valid token; it may not do this |
| 404, 405 | no such record or path; another method |
| 408, 413, 415, 431 | too slow; body too large; not JSON in UTF-8; headers too large |
| 409, 412, 422 | the state of the record does not allow it; it has changed since it was shown; refused for good |
| 500, 503 | a fault of Quayside; not now, see \`Retry-After\` |

Answers may gain fields and enumerations may gain words in later versions: ignore a field and tolerate a word that you do not know.
`
