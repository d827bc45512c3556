/**
 * Parts of a page that stay current: the script of the page has htmx read each part again when something was stored, and replace it
 * if it has changed.
 */
import { createHash } from 'node:crypto'
import { type Html, html } from '../domain/html.ts'

/** Returns the content with its digest. The browser sends the digest along when it asks again. */
export const withDigest = (content: Html): Html =>
  html`<input type="hidden" name="seen" value="${digestOf(content)}">${content}`

export const digestOf = (content: Html): string =>
  createHash('sha256').update(content.toString()).digest('base64url').slice(0, 16)

/** A live part. Its content has no element around it. A browser without JavaScript shows the part as it was at first. */
export interface Live {
  /** `section` unless the page needs another element. */
  tag?: 'section' | 'header' | 'figure' | 'div'
  id: string
  class?: string
  /** The id of the part's heading. */
  labelledBy?: string
  /** Whether screen readers announce a change of the part. At most one part of a page is announced. */
  isPolite?: boolean
  /** The address from which the part is read again, with its query. */
  from: string
  /** Whether the part is read again only once, when the page has been loaded. */
  isOnce?: boolean
  content: Html
}

export function live({ tag = 'section', id, class: classes, labelledBy, isPolite, from, isOnce, content }: Live): Html {
  const attributes = html` id="${id}"${classes && html` class="${classes}"`}${labelledBy && html` aria-labelledby="${labelledBy}"`}${isPolite && html` aria-live="polite"`}`
  const polling = html` hx-get="${from}" hx-trigger="${isOnce ? 'load' : 'read'}" hx-include="find [name=seen]" hx-swap="innerHTML"`
  return html`<${tag}${attributes}${polling}>${withDigest(content)}</${tag}>`
}

/**
 * Draws the first sentence of a page that stays current. Once the page has lost its connection, it says so instead: a page that is
 * old must not say that all is well.
 *
 * @param content a heading and a line of fact
 */
export const liveHeadline = (from: string, content: Html): Html =>
  html`<header class="health">${live({ tag: 'div', id: 'health', isPolite: true, from, content })}</header>`
