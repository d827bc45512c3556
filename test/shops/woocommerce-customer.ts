/**
 * What the customer of a WooCommerce order can read, as the templates of WooCommerce 10.5 print it. `text` is what stands on the
 * screen, `links` are the addresses that open by a click.
 */
import { linesOf, type WooMail, type WooOrder } from './woocommerce-orders.ts'

export interface Readable {
  text: string
  links: string[]
  html: string
}

export function customerSees(order: WooOrder | undefined, mails: readonly WooMail[]) {
  if (!order) return { mails: [], page: readable([]) }
  const toCustomer = mails.filter((mail) => mail.order === order.id && mail.to === String(order.billing.email))
  const notes = order.notes.filter(({ isForCustomer }) => isForCustomer)
  return {
    // `emails/customer-note.php`: wpautop( make_clickable( wc_wptexturize_order_note( $customer_note ) ) )
    mails: toCustomer.map(({ kind, words, lines }) => ({
      kind,
      ...readable([...words.map((note) => clickable(texturized(note))), ...lines.map(metaShown)]),
    })),
    // `myaccount/view-order.php`: wpautop( wptexturize( $note->comment_content ) ). An address is no link there by itself.
    page: readable([...notes.map(({ note }) => texturized(note)), ...linesOf(order).map(metaShown)]),
  }
}

/** `wc_display_item_meta`: wp_kses_post( make_clickable( rawurldecode( value ) ) ), without texturize. */
const metaShown = (line: string): string => {
  let text = line
  try {
    text = decodeURIComponent(line)
  } catch {
    // PHP leaves what is no encoded character as it is.
  }
  return clickable(text)
}

const readable = (html: string[]): Readable => ({
  html: html.join('<br>\n'),
  text: html.map((part) => part.replaceAll(/<[^>]*>/g, '')).join('\n'),
  links: html.flatMap((part) => [...part.matchAll(/<a href="([^"]*)"/g)].flatMap(([, address]) => address ?? [])),
})

/** Changes the text between tags, but not in `code`. */
function outsideCode(html: string, change: (text: string) => string): string {
  let depth = 0
  return html
    .split(/(<[^>]*>)/)
    .map((part) => {
      if (/^<code[\s>]/.test(part)) depth += 1
      if (part === '</code>') depth -= 1
      return part.startsWith('<') || depth > 0 ? part : change(part)
    })
    .join('')
}

const texturized = (html: string): string =>
  outsideCode(html, (text) =>
    text
      .replaceAll('---', '—')
      .replaceAll('--', '–')
      .replaceAll(/"([^"]*)"/g, '“$1”'),
  )

const clickable = (html: string): string =>
  outsideCode(html, (text) => text.replaceAll(/(?<=^|\s)https?:\/\/[^\s<]+/g, '<a href="$&">$&</a>'))
