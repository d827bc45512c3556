import type pg from 'pg'

export interface PipelineStatement {
  text: string
  values: (string | Buffer | null)[]
}

/** What became of a pipeline. */
export interface PipelineResult {
  /** The command tags of the statements that ran, such as `UPDATE 1`; `SELECT` for a statement that gave rows. */
  tags: string[]
  /** Why no further statement ran; undefined when all statements ran. */
  error: unknown
}

/** What `pg` has but its types leave out. */
interface Wire {
  stream: { cork(): void; uncork(): void }
  parse(message: { text: string }): void
  bind(message: { values: PipelineStatement['values'] }): void
  execute(message: object): void
  sync(): void
}

/**
 * Sends statements together and awaits their answers together, in one round trip. The statements share one Sync, so that the
 * server runs no statement after a failure. In the pipeline mode of `pg` each statement has a Sync of its own: when BEGIN fails,
 * the other statements would run outside of any transaction.
 * Rows that come back are dropped.
 *
 * Never rejects.
 */
export function runPipeline(client: pg.ClientBase, statements: PipelineStatement[]): Promise<PipelineResult> {
  return new Promise((resolve) => {
    const tags: string[] = []
    let returned = false
    const ignore = (): void => undefined
    const finish = (error: unknown): void => {
      handlers.callback?.()
      resolve({ tags, error })
    }
    // `pg` calls `submit` when it is the turn of this query, and a handler for each message of the answer.
    const handlers = {
      /** `pg` puts a function here that ends its timer. */
      callback: undefined as (() => void) | undefined,
      submit(connection: unknown): void {
        const wire = connection as Wire
        wire.stream.cork()
        for (const { text, values } of statements) {
          wire.parse({ text })
          wire.bind({ values })
          wire.execute({})
        }
        wire.sync()
        wire.stream.uncork()
      },
      handleCommandComplete({ text }: { text: string }): void {
        tags.push(returned ? 'SELECT' : text)
        returned = false
      },
      handleError: (error: unknown): void => finish(error),
      handleReadyForQuery: (): void => finish(undefined),
      handleRowDescription: ignore,
      handleDataRow(): void {
        returned = true
      },
      handlePortalSuspended: ignore,
      handleEmptyQuery: ignore,
      handleCopyInResponse: ignore,
      handleCopyData: ignore,
    }
    client.query(handlers)
  })
}
