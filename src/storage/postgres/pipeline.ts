import type pg from 'pg'

export interface PipelineStatement {
  text: string
  /** The server keeps the statement under this name for as long as the connection lasts. One name never means two texts. */
  name?: string | undefined
  values: (string | Buffer | null)[]
}

/** What a statement has given. */
export interface PipelineAnswer {
  /** Such as `UPDATE 1`. */
  tag: string
  /** The columns of its rows; empty where they were not asked for. */
  columns: { name: string; dataTypeID: number }[]
  rows: (string | null)[][]
}

/** What became of a pipeline. */
export interface PipelineResult {
  /** The answers of the statements that ran. */
  answers: PipelineAnswer[]
  /** Why no further statement ran; undefined when all statements ran. */
  error: unknown
}

/** What `pg` has but its types leave out. */
interface Wire {
  stream: { cork(): void; uncork(): void }
  /** The statements that this connection has, by their names. */
  parsedStatements: Record<string, string>
  on(event: 'parseComplete', listener: () => void): void
  off(event: 'parseComplete', listener: () => void): void
  parse(message: { text: string; name: string }): void
  bind(message: { values: PipelineStatement['values']; statement: string }): void
  describe(message: { type: 'P' }): void
  execute(message: object): void
  sync(): void
}

/**
 * Sends statements together and awaits their answers together, in one round trip. The statements share one Sync, so that the
 * server runs no statement after a failure. In the pipeline mode of `pg` each statement has a Sync of its own: when BEGIN fails,
 * the other statements would run outside of any transaction.
 *
 * Never rejects.
 *
 * @param reads whether the rows are wanted, with their columns
 */
export function runPipeline(
  client: pg.ClientBase,
  statements: PipelineStatement[],
  reads = false,
): Promise<PipelineResult> {
  return new Promise((resolve) => {
    const answers: PipelineAnswer[] = []
    let columns: PipelineAnswer['columns'] = []
    let rows: (string | null)[][] = []
    let wire: Wire | undefined
    /** The statements whose texts were sent. The server answers each that it has understood. */
    const parsing: PipelineStatement[] = []
    const parsed = (): void => {
      const { name, text } = parsing.shift() ?? {}
      if (wire && name && text) wire.parsedStatements[name] = text
    }
    const ignore = (): void => undefined
    const finish = (error: unknown): void => {
      wire?.off('parseComplete', parsed)
      handlers.callback?.()
      resolve({ answers, error })
    }
    // `pg` calls `submit` when it is the turn of this query, and a handler for each message of the answer.
    const handlers = {
      /** `pg` puts a function here that ends its timer. */
      callback: undefined as (() => void) | undefined,
      submit(connection: unknown): void {
        wire = connection as Wire
        wire.on('parseComplete', parsed)
        wire.stream.cork()
        for (const statement of statements) {
          const { text, values, name = '' } = statement
          const isKnown = name !== '' && (name in wire.parsedStatements || parsing.some((one) => one.name === name))
          if (!isKnown) {
            wire.parse({ text, name })
            parsing.push(statement)
          }
          wire.bind({ values, statement: name })
          if (reads) wire.describe({ type: 'P' })
          wire.execute({})
        }
        wire.sync()
        wire.stream.uncork()
      },
      handleCommandComplete({ text: tag }: { text: string }): void {
        answers.push({ tag, columns, rows })
        columns = []
        rows = []
      },
      handleError: (error: unknown): void => finish(error),
      handleReadyForQuery: (): void => finish(undefined),
      handleRowDescription({ fields }: { fields: PipelineAnswer['columns'] }): void {
        columns = fields
      },
      handleDataRow({ fields }: { fields: (string | null)[] }): void {
        if (reads) rows.push(fields)
      },
      handlePortalSuspended: ignore,
      handleEmptyQuery: ignore,
      handleCopyInResponse: ignore,
      handleCopyData: ignore,
    }
    client.query(handlers)
  })
}
