/** What a page of the console is: pages, their actions and their live parts are data, from which the routes are made. */
import type { PersonRole, SessionCaller } from '../access/sessions.ts'
import type { Sign } from '../domain/labels.ts'
import type { StatusView } from '../http/api/status.ts'
import type { AnswerOf, OperationId, PathNameOf, QueryNameOf } from '../http/api/table.ts'
import type { Html } from './html.ts'

/** What the navigation needs of a page. */
export interface NavigationEntry {
  /** Pieces that vary start with a colon: `/orders/:id`. */
  path: string
  /** Where it stands in the navigation; absent for a page that is reached from another one. */
  navigation?: {
    group: NavigationGroup
    label: string
    /** How many things of it wait for a person. */
    waiting?: (status: StatusView) => number
  }
}

/** A page for people who are signed in. */
export interface Page extends NavigationEntry {
  role: PersonRole
  /** Path of the page of the navigation that it belongs to (default: its own). */
  below?: string
  show: (visit: Visit) => Promise<Shown>
  /** Forms of it, by the last piece of their path: `POST <path>/freeze`. */
  actions?: Record<string, Action>
  /** Parts that are read again every few seconds: `GET <path>/parts/balance`. See `live`. */
  parts?: Record<string, (visit: Visit) => Promise<Html>>
}

export const navigationGroups = ['', 'Needs attention', 'Selling', 'Supplier', 'This installation'] as const
export type NavigationGroup = (typeof navigationGroups)[number]

export interface Shown {
  /** Of the window; the page has its own heading. */
  title: string
  main: Html
}

export interface Action {
  role: PersonRole
  /**
   * @returns what was done, said at the top of the page that follows, or a page that is shown this once
   * @throws Failure, which the page of the action then shows with what was typed: nothing was done
   */
  run: (visit: Visit) => Promise<Done | Shown>
}

/** An action of those who may decide, and one of those who may do all. */
export const byOperator = (run: Action['run']): Action => ({ role: 'operator', run })
export const byAdmin = (run: Action['run']): Action => ({ role: 'admin', run })

export interface Done {
  notice: Notice
  /** The page that follows (default: the page of the action). */
  to?: string
}

/** @param to the page that follows */
export const done = (word: string, text: string, to?: string): Done => ({
  notice: { kind: 'done', word, text },
  ...(to !== undefined && { to }),
})

/** The answer to a click. */
export interface Notice {
  kind: Extract<Sign, 'done' | 'held' | 'stop'>
  /** What happened, in a word or two. */
  word: string
  text: string
}

/** One request of a person who is signed in. */
export interface Visit {
  caller: SessionCaller
  /** Pieces of the path, decoded. */
  path: Record<string, string>
  query: URLSearchParams
  /** What was typed: of an action, and of its page after a failure. */
  form: URLSearchParams
  /** What is wrong with it, by the name of the field. */
  faults: ReadonlyMap<string, string>
  /** Epoch milliseconds. */
  now: number
  /**
   * Calls an operation of the API by its name, in process: the same permission, checks and audit.
   *
   * @throws Failure as the API would answer it
   */
  call: <N extends OperationId>(name: N, asked?: OperationInput<N>) => Promise<AnswerOf<N>>
  /** `viewStatus`, at most two seconds old; an action makes it new. */
  status: () => Promise<StatusView>
}

/** A parameter of the query that stands in neither the address nor the form is left out: an empty value is none. */
export interface OperationInput<N extends OperationId> {
  path?: Given<PathNameOf<N>>
  query?: Given<N extends OperationId ? QueryNameOf<N> : never>
  body?: object
  /** The version that the change is based on. */
  version?: string
}

type Given<Name extends string> = { [K in Name]?: string | null | undefined }
