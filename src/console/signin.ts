/** Signing in and out: the link and its page, the cookies, and the page about one's own session. */
import type { IncomingHttpHeaders } from 'node:http'
import { INVITATION_MS, LINK_MS, type PersonRole, SESSION_MS, type SignOutScope } from '../access/sessions.ts'
import { type Html, html } from '../domain/html.ts'
import { PATH_FORM } from '../http/server.ts'
import { act, hidden } from './forms.ts'
import { landing } from './layout.ts'
import { facts, section } from './lists.ts'
import type { Page } from './page.ts'
import { clock, timeTag } from './words.ts'

/**
 * A cookie of the console. Browsers send a cookie to every port of a host, so the port is in its name: two installations on one host keep
 * two sessions. Behind TLS, the name binds it to this very host. Browsers also send it when a person follows a link from another site,
 * such as a mail: `guard.ts` refuses all else that another site sends.
 *
 * @param address of the console
 */
function cookieOf(address: string, label: string, seconds: number) {
  const { protocol, port } = new URL(address)
  const isSecure = protocol === 'https:'
  const name = `${isSecure ? '__Host-' : ''}${label}${port && `-${port}`}`
  const more = `; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
  return {
    /** Returns its text; undefined where the browser sends no such cookie, or two. */
    read: ({ cookie = '' }: IncomingHttpHeaders): string | undefined => {
      const values = cookie.split(';').flatMap((pair) => {
        const [key = '', ...value] = pair.trim().split('=')
        return key === name ? [value.join('=')] : []
      })
      return values.length === 1 && /^[\w-]{1,2000}$/.test(values[0] ?? '') ? values[0] : undefined
    },
    set: (text: string): string => `${name}=${text}; Max-Age=${seconds}${more}`,
    clear: `${name}=; Max-Age=0${more}`,
  }
}

/** The cookie in which the browser keeps a session. */
export const sessionCookie = (address: string) => cookieOf(address, 'quayside', SESSION_MS / 1_000)

/** The cookie that keeps the page which a person asked for before signing in, as long as an invitation is good. */
export function askedPage(address: string) {
  const { read, set, clear } = cookieOf(address, 'quayside-page', INVITATION_MS / 1_000)
  return {
    /** Returns the path of a page of our own: the one that was asked for, else the first page. */
    read: (headers: IncomingHttpHeaders): string => {
      const path = Buffer.from(read(headers) ?? '', 'base64url').toString()
      return PATH_FORM.test(path) ? path : '/overview'
    },
    set: (path: string): string => (path.length > 1_000 ? clear : set(Buffer.from(path).toString('base64url'))),
    clear,
  }
}

export const mayDo: Record<PersonRole, string> = {
  viewer: 'A viewer sees everything but keys and bodies, and changes nothing.',
  operator:
    'An operator can decide, release, retry, freeze and invite; revealing bodies and changing secrets needs an admin.',
  admin: 'An admin can do everything, also reveal keys and bodies and change secrets.',
}

/** Draws the page of a link. Opening it does not use the link up: a program that opens links in advance does not sign in. */
export const signInPage = (
  link: string,
  good: { name: string; role: PersonRole; endsAt: number },
  now: number,
  opens?: { to: string; isOffer: boolean },
): Html => {
  const until = new Date(good.endsAt).toISOString()
  return landing(
    'Sign in',
    html`<h1>Sign in as ${good.role}</h1>
<p>This link was made for <bdi>${good.name}</bdi>. It works once, until ${timeTag(until, `${clock(until, now, 'minutes')} UTC`)}.</p>
<form method="post" action="/signin">${hidden('link', link)}${opens && !opens.isOffer && hidden('to', opens.to)}<button class="go">Sign in</button>${opens?.isOffer && html`<button name="to" value="${opens.to}">Set up your shop</button>`}</form>
<p class="small quiet">You stay signed in on this browser for 12 hours after you last used it. ${mayDo[good.role]}</p>
<details class="more"><summary>The link has expired or was used?</summary>${newLink}</details>`,
    VIEW,
  )
}

const newLink = html`<p class="small">Ask a colleague for a link, who makes one on the page People. Or make one on the machine where Quayside runs:</p><pre tabindex="0">npx quayside console</pre><p class="small quiet">In a container: <code>docker compose exec quayside /app/src/quayside.js console</code></p>`

/** Draws the page that people see instead of any other page while they are not signed in. @param asked what opens after signing in */
export const signedOutPage = (why: string, asked?: string): Html =>
  landing(
    'Signed out',
    html`<h1>You are signed out</h1>
<p>${why}</p>
${newLink}
${asked !== undefined && html`<p class="small quiet">Once you have signed in with this browser, the page that you asked for opens.</p>`}`,
    VIEW,
  )

export const SIGNED_OUT = 'The console opens by a link that works once, or by the session that such a link began.'
export const LINK_GONE = `The link has expired, was used, or is not whole. It works once: for ${LINK_MS / 60_000} minutes, or for a day if a colleague made it.`

export const sessionPage: Page = {
  path: '/session',
  show: async ({ caller }) => {
    const out = (scope: SignOutScope, button: string, about: string, effect: string) =>
      act({
        to: '/signout',
        about,
        effect: { People: effect, Undo: html`A new link, from a colleague or from <code>npx quayside console</code>.` },
        fields: hidden('scope', scope),
        button,
        stops: true,
      })
    return {
      title: 'Your session',
      main: html`<header class="title"><h1>You are signed in as ${caller.name}</h1><p class="quiet">${mayDo[caller.role]}</p></header>
${section(
  'session-h',
  'This session',
  html`${facts([
    ['Role', caller.role],
    ['In the audit log', html`<span class="id">${caller.actor}</span>`],
    ['Ends', '12 hours after its last use, 7 days after its beginning at the latest'],
  ])}
<div>${out('here', 'Sign out here', 'Ends this session.', 'Other browsers stay signed in.')}
${out('own', `Sign out ${caller.name} everywhere`, `Ends every session of ${caller.name}, on all browsers.`, `Unused links for ${caller.name} are worth nothing any more.`)}
${caller.role === 'admin' && out('all', 'Sign out all people', 'Ends every session of the console.', 'Everyone needs a new link, you too. Tokens of the API stay valid.')}</div>`,
)}`,
    }
  },
}

const VIEW = html`<svg class="view" viewBox="0 0 1360 260" preserveAspectRatio="xMidYMax slice" aria-hidden="true"><path class="sea" d="M0 132h1360v128H0z"/><path class="ripple" d="M640 168c18 0 18-5 36-5s18 5 36 5M880 204c16 0 16-5 32-5s16 5 32 5M1010 172c14 0 14-4 28-4s14 4 28 4M700 226c16 0 16-5 32-5s16 5 32 5M1140 226c12 0 12-4 24-4s12 4 24 4M820 240c12 0 12-4 24-4s12 4 24 4M1230 184c14 0 14-4 28-4s14 4 28 4"/><path class="line" d="M560 66C620 110 690 120 760 112"/><path class="hull" d="M752 108h112l-16 36h-84z"/><path class="deck" d="M786 88h44v20h-44z"/><path class="line" d="M808 88V34"/><path class="flag" d="M809 36l26 9-26 9z"/><path class="wall" d="M0 84h600v176H0z"/><path class="wall" d="M536 58h48v10h-12v18h-24V68h-12zM376 58h48v10h-12v18h-24V68h-12zM216 58h48v10h-12v18h-24V68h-12z"/><path class="scale" d="M578 100h16v4h-16zM584 116h10v4h-10zM578 132h16v4h-16zM584 148h10v4h-10zM578 164h16v4h-16zM584 180h10v4h-10zM578 196h16v4h-16zM584 212h10v4h-10zM578 228h16v4h-16z"/></svg>`
