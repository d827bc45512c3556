/** What a page of the console is. Pages, their actions and their live parts are data, and the routes are made from this data. */
import type { PersonRole, SessionCaller } from '../access/sessions.ts'
import type { Html, Piece } from '../domain/html.ts'
import type { Sign } from '../domain/labels.ts'
import type { StatusView } from '../http/api/status.ts'
import type { AnswerOf, OperationId, PathNameOf, QueryNameOf } from '../http/api/table.ts'
import type { SentFile } from '../http/operation.ts'

export interface NavigationEntry {
  /** Pieces that vary start with a colon: `/orders/:id`. */
  path: string
  /** The place of the page in the navigation; absent for a page that is reached from another page. */
  navigation?: {
    group: NavigationGroup
    label: string
    /** Returns how many things of the page wait for a person. */
    waiting?: (status: StatusView) => number
    /** Where that counting stops (default: where the counts of the status do). */
    upTo?: (status: StatusView) => number
  }
}

/** A page for all people who are signed in. Each of its actions names the role that may use the action. */
export interface Page extends NavigationEntry {
  /** The path of the navigation entry to which the page belongs (default: its own path). */
  below?: string
  show: (visit: Visit) => Promise<Shown>
  /** What the page shows, as a file: `GET <path>.csv`. */
  file?: (visit: Visit) => Promise<SentFile>
  /** The actions of the page, by the last piece of their path: `POST <path>/freeze`. */
  actions?: Record<string, Action>
  /**
   * Parts that are read again every few seconds: `GET <path>/parts/balance`. See `live`. A part that returns undefined is over, and the
   * browser loads the page again.
   */
  parts?: Record<string, (visit: Visit) => Promise<Html | undefined>>
}

export const navigationGroups = ['', 'Needs attention', 'Selling', 'Supplier', 'This installation'] as const
export type NavigationGroup = (typeof navigationGroups)[number]

export interface Shown {
  /** The title of the window. The page has its own heading. */
  title: string
  main: Html
  /** The address of the page that is shown instead. */
  to?: string | undefined
  /** The address to which the browser goes on by itself, in a moment. */
  next?: string | undefined
  /** What it says first. */
  notice?: Notice
}

export interface Action {
  role: PersonRole
  /**
   * @returns what was done, for the notice at the top of the next page; or a page that is shown only this time
   * @throws Failure when nothing was done. The page of the action then shows the failure with what was typed.
   */
  run: (visit: Visit) => Promise<Done | Shown>
}

/** `byOperator` makes an action for people who may decide, and `byAdmin` makes an action for people who may do all. */
export const byOperator = (run: Action['run']): Action => ({ role: 'operator', run })
export const byAdmin = (run: Action['run']): Action => ({ role: 'admin', run })

export interface Done {
  notice: Notice
  /** The page that follows (default: the page of the action). */
  to?: string | undefined
}

/** @param to the page that follows */
export const done = (word: string, text: string, to?: string): Done => ({ notice: { kind: 'done', word, text }, to })

/** The answer to a click. */
export interface Notice {
  kind: Extract<Sign, 'done' | 'held' | 'stop'>
  /** What happened, in a word or two. */
  word: Piece
  text: Piece
}

/** One request of a person who is signed in. */
export interface Visit {
  caller: SessionCaller
  /** Pieces of the path, decoded. */
  path: Record<string, string>
  query: URLSearchParams
  /** The action that was posted: the last piece of its path. */
  action?: string | undefined
  /** What a person typed into an action. After a failure, the page of the action shows the text again. */
  form: URLSearchParams
  /** What is wrong with what was typed, by the name of the field. */
  faults: ReadonlyMap<string, string>
  /** Epoch milliseconds. */
  now: number
  /**
   * Calls an operation of the API by its name, in process, with the same permission, checks and audit.
   *
   * @throws Failure as the API would answer it
   */
  call: <N extends OperationId>(name: N, asked?: OperationInput<N>) => Promise<AnswerOf<N>>
  /** Returns the answer of `viewStatus`, at most two seconds old. After an action it is read again. */
  status: () => Promise<StatusView>
  /** Returns the answer of `viewWaiting`, as old as that of `status`. */
  waiting: () => Promise<AnswerOf<'viewWaiting'>>
}

/** The input of an operation. A query parameter without a value is left out, and so is a parameter with an empty value. */
export interface OperationInput<N extends OperationId> {
  path?: Given<PathNameOf<N>>
  query?: Given<N extends OperationId ? QueryNameOf<N> : never>
  body?: object
  /** The version that the change is based on. */
  version?: string
}

type Given<Name extends string> = { [K in Name]?: string | null | undefined }
