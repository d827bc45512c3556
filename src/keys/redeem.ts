/** How customers redeem their keys: texts of the merchant in Markdown. HTML is shown as text, and nothing is loaded from elsewhere. */
import MarkdownIt from 'markdown-it'
import { Html } from '../domain/html.ts'

export interface RedeemText {
  /** The supplier's id of a product, and a category of the supplier. Without both, the text is for every key. */
  product?: string | undefined
  category?: string | undefined
  /** Markdown, or Markdown by language. */
  text: string | Record<string, string>
}

export interface Redeemed {
  productId: string
  category: string | null
}

const markdown = new MarkdownIt('commonmark', { html: false }).disable('image')
markdown.validateLink = (address) => /^(https:\/\/|mailto:)/i.test(address)
const { rules } = markdown.renderer
// The page has headings of its own, so a heading of the text is a bold line.
rules.heading_open = () => '<p><b>'
rules.heading_close = () => '</b></p>'
rules.link_open = (tokens, index, options, _, renderer) => {
  tokens[index]?.attrSet('rel', 'noreferrer nofollow')
  return renderer.renderToken(tokens, index, options)
}

/**
 * Returns the text for a product: the one that names it, else the one for its category, else the one for all. The first of equals counts.
 *
 * @param of undefined: the supplier does not sell it any more
 * @param language a tag such as `de-AT`
 */
export function redeemText(texts: readonly RedeemText[], of: Redeemed | undefined, language: string): Html | undefined {
  const fitting = texts.filter(
    ({ product, category }) =>
      (product === undefined || product === of?.productId) && (category === undefined || category === of?.category),
  )
  const nearest =
    fitting.find(({ product }) => product !== undefined) ??
    fitting.find(({ category }) => category !== undefined) ??
    fitting[0]
  if (!nearest) return undefined
  return new Html(markdown.render(inLanguage(nearest.text, language)))
}

function inLanguage(text: RedeemText['text'], tag: string): string {
  if (typeof text === 'string') return text
  const [primary = ''] = tag.split('-')
  return text[tag] ?? text[primary] ?? text.en ?? Object.values(text)[0] ?? ''
}
