import { existsSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { Failure } from '../errors.ts'
import { CONFIG_FILE } from './client.ts'
import type { Session } from './program.ts'

/** `serve` and `sandbox`: the two that stay in the foreground until they are told to stop. */
export function addServe(root: Command, { io, program, end }: Session): void {
  const serve = root
    .command('serve')
    .description('run the service; without a configuration, a demo against the sandbox')
  serve.option('--config <file>', `configuration, else QUAYSIDE_CONFIG, else ${CONFIG_FILE}`)
  serve.option('--port <number>', "instead of the configuration's; 0 takes a free one", whole(65_535))
  serve.action(async ({ config, port }: { config?: string; port?: number }) => {
    const named = config ?? (io.env.QUAYSIDE_CONFIG || undefined)
    const configFile = named ?? CONFIG_FILE
    const exists = existsSync(configFile)
    if (named !== undefined && !exists) {
      throw new Failure('not_found', `there is no ${named}; \`npx quayside init --config ${named}\` makes one`)
    }
    const options = { configFile, demo: !exists, ...(port === undefined ? {} : { port }) }
    end(await program.serve(options).catch((error: unknown) => Promise.reject(withAdvice(error, config))))
  })

  const sandbox = root.command('sandbox').description('run a supplier to try things on: the whole Reseller API v1.1')
  sandbox.option('--port <number>', 'where it listens; 0 takes a free one', whole(65_535), 8090)
  sandbox.option('--offers <count>', 'sell a generated catalogue of this size', whole(10_000_000))
  sandbox.option('--seed <number>', 'of the generated catalogue', whole(2 ** 31))
  sandbox.option('--dialect <name|file>', 'the dialect that it speaks', 'reseller-v1.1')
  sandbox.option('--file <file>', 'keep the world in this SQLite file; gone with the process unless told')
  sandbox.option('--api-key <key>', 'the key that it lets in', 'sandbox-key')
  sandbox.addHelpText('after', '\nExample:\n  quayside sandbox --offers 50000 --seed 7 --file data/run/sandbox.db')
  sandbox.action(async (options: Parameters<typeof program.sandbox>[0]) => {
    end(await program.sandbox(options))
  })
}

/**
 * A database that is not there was never made, or its volume is lost: an empty one in its place would sell without
 * knowing what was bought. So the lost one comes first.
 *
 * @param config as the command line names it: the commands of the advice must name it too
 */
function withAdvice(error: unknown, config: string | undefined): unknown {
  if (!(error instanceof Failure) || error.reason !== 'no_database') return error
  const more = config === undefined ? '' : ` --config ${config}`
  const advice = [
    'If there was one, restore it or mount its volume first: a lost volume and a wrong dataDir look like a new installation. A backup is put back by',
    `npx quayside restore <backup>${more}`,
    'Only a new installation gets an empty one, by',
    `npx quayside database create${more}`,
  ]
  return new Failure(error.code, [`${error.message}.`, ...advice].join('\n'), { cause: error, reason: error.reason })
}

/** A whole number from 0 to `max`. */
const whole =
  (max: number) =>
  (text: string): number => {
    if (/^\d{1,10}$/.test(text) && Number(text) <= max) return Number(text)
    throw new InvalidArgumentError(`Give a whole number from 0 to ${max}.`)
  }
