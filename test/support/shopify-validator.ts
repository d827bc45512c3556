/** Shopify's own validator of webhooks, for what the shop of the tests signs and what the adapter takes. */
import '@shopify/shopify-api/adapters/web-api'
import { ApiVersion, LogSeverity, shopifyApi } from '@shopify/shopify-api'

/** Whether Shopify's library takes a request for one of Shopify, signed with this secret. */
export async function validatedByShopify(
  secret: string,
  { url, headers, body }: { url: string; headers: Record<string, string>; body: string },
) {
  const { webhooks } = shopifyApi({
    apiKey: 'key',
    apiSecretKey: secret,
    apiVersion: ApiVersion.July26,
    hostName: 'quayside.test',
    isEmbeddedApp: false,
    logger: { level: LogSeverity.Error },
  })
  return webhooks.validate({ rawBody: body, rawRequest: new Request(url, { method: 'POST', headers, body }) })
}
