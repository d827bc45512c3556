/** The page of people: who may sign in, links for colleagues, and how a person is signed out and removed. */
import { INVITATION_MS, personRoles } from '../access/sessions.ts'
import { RANK } from '../access/tokens.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { outcomesOf } from '../http/answers.ts'
import type { AnswerOf, ItemOf } from '../http/api/table.ts'
import { act, hidden, maybeReason, maybeReasonField, needsRole, notNow, pick, textField } from './forms.ts'
import { facts, notice, section } from './lists.ts'
import { mark } from './marks.ts'
import { byAdmin, byOperator, done, type Page, type Shown, type Visit } from './page.ts'
import { mayDo } from './signin.ts'
import { table, withQuery } from './tables.ts'
import { ago, clockTag, countedInWords, sentenceStart } from './words.ts'

type PersonView = ItemOf<'listPeople'>

const HOURS = INVITATION_MS / 3_600_000
const pathTo = (name: string): string => withQuery('/people', new URLSearchParams({ name }))

export const peoplePage: Page = {
  path: '/people',
  navigation: { group: 'This installation', label: 'People' },
  show: (visit) => shown(visit),
  actions: {
    invite: byOperator(async (visit) => {
      const { call, form } = visit
      const body = { name: form.get('name') ?? '', role: form.get('role') ?? '', hours: HOURS }
      const made = await call('createConsoleLink', { body })
      return shown({ ...visit, form: new URLSearchParams() }, linkMade(made, visit.now))
    }),
    'end-sessions': byAdmin(async ({ call, caller, form }) => {
      const name = form.get('person') ?? ''
      const open = (await call('listSessions')).items.filter((one) => one.name === name && one.id !== caller.id)
      const each = await outcomesOf(open, ({ id }) => call('endSession', { path: { id } }))
      const text = `${countedInWords(each.filter(({ is }) => is === 'done').length, 'session')} of ${name}. Signing in again needs a new link.`
      return done('Ended', text, pathTo(name))
    }),
    remove: byAdmin(async ({ call, form }) => {
      const { name } = await call('removePerson', { body: { name: form.get('person') ?? '', ...maybeReason(form) } })
      return done('Removed', `${name} is signed out everywhere, and no link signs ${name} in.`)
    }),
  },
}

async function shown(visit: Visit, first?: Html): Promise<Shown> {
  const { items } = await visit.call('listPeople')
  const wanted = visit.form.get('person') ?? visit.query.get('name')
  const chosen = items.find(({ name }) => name === wanted)
  return {
    title: 'People',
    main: html`<header class="title"><h1>People</h1><p>${headline(items)} <span class="quiet">The audit log keeps <a href="/audit">what each of them did</a>.</span></p></header>
${first}
<div class="split"><div class="stack wide">${section('people-h', 'Who may sign in', peopleTable(items, visit))}</div>
<div class="stack">${chosen && personPart(visit, chosen)}
${section('invite-h', 'Invite a colleague', invitation(visit))}</div></div>`,
  }
}

function headline(people: readonly PersonView[]): string {
  const here = people.filter(({ sessions }) => sessions > 0).length
  const invited = people.filter(({ linkUntil }) => linkUntil !== null).length
  const links =
    invited > 0 ? ` ${countedInWords(invited, 'person has', 'people have')} a link that is not used yet.` : ''
  return `${countedInWords(here, 'person is', 'people are')} signed in.${links}`
}

const peopleTable = (people: readonly PersonView[], { caller, now }: Visit): Html =>
  table<PersonView>({
    caption: 'People',
    rows: people,
    columns: [
      [
        'Name',
        ({ name }) =>
          html`<span><a href="${pathTo(name)}"><bdi>${name}</bdi></a>${name === caller.name && html` <small>you</small>`}</span>`,
      ],
      ['Signs in as', ({ role }) => role],
      ['Last seen', ({ seenAt }) => (seenAt === null ? 'never' : ago(seenAt, now))],
      ['State', stateOf, 'top'],
    ],
  })

function stateOf({ sessions, linkUntil, seenAt }: PersonView): Html {
  if (sessions > 0) return mark('done', sessions === 1 ? 'signed in' : `${sessions} sessions`)
  if (linkUntil !== null) return mark('held', seenAt === null ? 'invited' : 'has a link')
  return mark('off', 'signed out')
}

/** The form that makes a link: for a new colleague, or for the next sign-in of a known one, who types the same name. */
function invitation(visit: Visit): Piece {
  const { role } = visit.caller
  if (role === 'viewer') return notNow(needsRole('Invite', 'operator', visit))
  const given = personRoles.filter((one) => RANK[one] <= RANK[role])
  return html`<form method="post" action="/people/invite" class="stack">${textField(visit, { label: 'Name, as the audit log shows it', name: 'name', isRequired: true, maxLength: 100 })}
<fieldset><legend>Role</legend>${pick(
    'role',
    given.map((value) => ({ value, label: sentenceStart(value), about: mayDo[value] })),
  )}</fieldset>
<button class="go">Make the link</button></form>
<p class="small quiet">The link is shown once, works once, and ends after ${HOURS} hours.</p>`
}

function personPart(visit: Visit, { name, role, seenAt, sessions, linkUntil }: PersonView): Html {
  const { caller, now } = visit
  const mayInvite = caller.role !== 'viewer' && RANK[role] <= RANK[caller.role]
  const mayEnd = caller.role === 'admin' && name !== caller.name
  const person = html`<bdi>${name}</bdi>`
  const link = act({
    summary: 'Make a new sign-in link…',
    to: '/people/invite',
    about: html`For the next sign-in of ${person}, as ${role}.`,
    fields: html`${hidden('name', name)}${hidden('role', role)}`,
    effect: { Link: `Shown once, works once, ends after ${HOURS} hours.`, Audit: 'Says that you made it.' },
    button: 'Make the link',
  })
  const end = act({
    to: '/people/end-sessions',
    about: html`Signs ${person} out of the console, on every browser.`,
    fields: hidden('person', name),
    effect: { People: 'A link that is not used still signs in.', Undo: 'A new link.' },
    button: 'End the sessions',
    stops: true,
  })
  const remove = act({
    to: '/people/remove',
    about: html`Ends every session and every unused link of ${person}.`,
    fields: html`${hidden('person', name)}${maybeReasonField(visit, 'remove')}`,
    effect: {
      Record: html`The audit log keeps what ${person} did.`,
      Tokens: html`Those of the API stay: see <a href="/settings">Settings</a>.`,
      Undo: 'Invite again.',
    },
    button: 'Remove this person',
    stops: true,
  })
  return section(
    'person-h',
    person,
    html`${facts([
      ['Role', role],
      ['Last seen', seenAt === null ? 'never' : clockTag(seenAt, now, 'minutes')],
      linkUntil !== null && ['Unused link', html`good until ${clockTag(linkUntil, now, 'minutes')}`],
    ])}
<div>${mayInvite && link}${mayEnd && sessions > 0 && end}${mayEnd && remove}</div>
${notNow(
  !mayInvite && needsRole('Make a sign-in link', role === 'viewer' ? 'operator' : role, visit),
  caller.role !== 'admin' && needsRole('End sessions, remove', 'admin', visit),
)}`,
  )
}

const linkMade = ({ link, name, role, expiresAt }: AnswerOf<'createConsoleLink'>, now: number): Html =>
  html`${notice({ kind: 'done', word: 'Made', text: html`Give this link to <bdi>${name}</bdi> now. It is shown once, works once, and ends ${clockTag(expiresAt, now, 'minutes')}.` })}
<section class="sheet stack" aria-labelledby="link-h"><h2 id="link-h">The link, shown this once</h2><pre tabindex="0" id="link">${link}</pre><p class="small quiet">The first person who opens it and presses Sign in is signed in as ${role}.</p></section>`
