import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { z } from 'zod'
import { Failure, messageOf } from '../errors.ts'
import { Secret } from '../secret.ts'
import { type CapturedDelivery, detectSignature } from '../supplier/detect.ts'
import { signingKey } from '../supplier/signature.ts'
import { exitCodes } from './exit-codes.ts'
import type { Session } from './program.ts'
import { print, widthOf } from './service-command.ts'
import { wrap } from './table.ts'

/** What the default dialect tolerates; no delivery shows it. */
const TOLERANCE_SECONDS = 300

/** A captured delivery in a file; whatever else stands in it is for people. */
const fileShape = z.object({
  /** Name -> value, or all its values. */
  headers: z.record(z.string(), z.union([z.string(), z.array(z.string())])),
  /** The bytes in base64. */
  body: z.string().regex(/^[A-Za-z0-9+/]*={0,2}$/, 'must be base64'),
})

/** `dialect detect`: finds the signature layout of one delivery whose secret is known. */
export function addDetect(dialect: Command, { io, end }: Session): void {
  const detect = dialect.command('detect').description('find out how a delivery is signed')
  detect.requiredOption('--delivery <file>', 'one delivery, as `quayside dialect capture show` prints it')
  detect.requiredOption('--secret-file <file>', 'file that holds the signing secret of its webhook')
  detect.option('--json', 'print one JSON document')
  detect.addHelpText('after', EXAMPLES)
  detect.action((options: { delivery: string; secretFile: string; json?: true }) => {
    const secret = signingKey(new Secret(readText(options.secretFile).replace(/\r?\n$/, '')))
    const found = detectSignature(readDelivery(options.delivery), secret, TOLERANCE_SECONDS)
    print(io, options.json === true, found, () => {
      if (!found.fits) return lines(`No known layout fits: ${found.why}.`, io)
      const profile = JSON.stringify({ signature: found.signature }, undefined, 2)
      return `${profile}\n\n${lines(found.signature.deliveryIdHeader === null ? NO_ID : WITH_ID, io)}`
    })
    end(found.fits ? exitCodes.ok : exitCodes.failed)
  })
}

const TOLERANCE = 'toleranceSeconds is the default: ask the supplier.'
const WITH_ID = `It verifies. deliveryIdHeader is the header whose name says so, and ${TOLERANCE}`
const NO_ID = `It verifies. No header is named for a delivery ID, and ${TOLERANCE}`

const EXAMPLES = `
The file holds {"headers": {"name": "value"}, "body": "<base64>"}. Known are
hex, base64 and base64url, any prefix, lists parted by comma, semicolon or
blank, and a timestamp in seconds or milliseconds in any header or inside the
signature's.

Example:
  quayside dialect detect --delivery delivery.json --secret-file secret.txt`

const lines = (text: string, io: Session['io']): string => `${wrap(text, Math.min(widthOf(io), 100)).join('\n')}\n`

function readDelivery(file: string): CapturedDelivery {
  let json: unknown
  try {
    json = JSON.parse(readText(file))
  } catch (cause) {
    throw new Failure('invalid', `${file} cannot be read as JSON: ${messageOf(cause)}`, { cause })
  }
  const result = fileShape.safeParse(json)
  if (!result.success) {
    const fields = result.error.issues.map(({ path, message }) => ({ field: path.join('.') || 'the file', message }))
    throw new Failure('invalid', `${file} is no captured delivery`, { fields })
  }
  const { headers, body } = result.data
  const distinct = Object.entries(headers).map(([name, values]) => [name.toLowerCase(), [values].flat()])
  return { headers: Object.fromEntries(distinct), body: Buffer.from(body, 'base64') }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new Failure('invalid', `${file} cannot be read: ${messageOf(cause)}`, { cause })
  }
}
