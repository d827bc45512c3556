/** The operations of the API as types: the input and the answer of each operation. The types do not exist at run time. */
import type { Events, PieceOf } from '../operation.ts'
import type { Operations } from './api.ts'

export type OperationId = keyof Operations
type TypesOf<N extends OperationId> = NonNullable<Operations[N]['types']>

/** The type of `data` in the answer of an operation. */
export type AnswerOf<N extends OperationId> = TypesOf<N>['answer']

/** An entry of the list that the operation answers. */
export type ItemOf<N extends OperationId> = N extends OperationId
  ? AnswerOf<N> extends { items: (infer I extends object)[] }
    ? I
    : never
  : never

/** A line of the stream that the operation answers; a stream that broke off ends with the line `error`. */
export type EventOf<N extends OperationId> = AnswerOf<N> extends Events<infer E> ? E : never

/** The type of the body of an operation; `unknown` where the operation takes no body. */
export type BodyOf<N extends OperationId> = TypesOf<N>['body']

/** The names of an operation's query parameters. */
export type QueryNameOf<N extends OperationId> = keyof TypesOf<N>['query'] & string

/** The names of the varying pieces of an operation's path. */
export type PathNameOf<N extends OperationId> = PieceOf<Operations[N]['route']>

/** Method and path of each operation, as people write them: `GET /status`. */
type Routes = { [N in OperationId as RouteOf<N>]: N }
export type RouteOf<N extends OperationId> = Operations[N]['route']
export type Route = keyof Routes

/** The name of the operation behind a route. */
export type OperationOf<R extends Route> = Routes[R]
