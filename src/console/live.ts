/** Parts of a page that stay current: htmx reads each again every few seconds and puts it in its place if it has changed. */
import { createHash } from 'node:crypto'
import { type Html, html } from './html.ts'

/** The content with what the browser sends along when it asks again. */
export const withDigest = (content: Html): Html =>
  html`<input type="hidden" name="seen" value="${digestOf(content)}">${content}`

export const digestOf = (content: Html): string =>
  createHash('sha256').update(content.toString()).digest('base64url').slice(0, 16)

/** A live part, without an element around it; a browser without JavaScript shows it as it was. */
export interface Live {
  /** `section` unless the page needs another element. */
  tag?: 'section' | 'header' | 'figure' | 'div'
  id: string
  class?: string
  /** Id of its heading. */
  labelledBy?: string
  /** Announced when it changes: for one part of a page at most. */
  isPolite?: boolean
  /** Where it is read again, with its query. */
  from: string
  content: Html
}

export function live({ tag = 'section', id, class: classes, labelledBy, isPolite, from, content }: Live): Html {
  const attributes = html` id="${id}"${classes && html` class="${classes}"`}${labelledBy && html` aria-labelledby="${labelledBy}"`}${isPolite && html` aria-live="polite"`}`
  const polling = html` hx-get="${from}" hx-trigger="every 5s" hx-include="find [name=seen]" hx-swap="innerHTML"`
  return html`<${tag}${attributes}${polling}>${withDigest(content)}</${tag}>`
}
