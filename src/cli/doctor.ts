import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { messageOf } from '../errors.ts'
import { plain } from './cell.ts'
import { clearTextWarnings, ENCRYPT } from './clear-text.ts'
import { configFileOf } from './connection.ts'
import { checkKey, checkRules, checkSync } from './doctor-database.ts'
import { checkLists } from './doctor-lists.ts'
import { checkRecords } from './doctor-records.ts'
import { checkCallbacks, checkDuties, checkPublicUrl, checkWebhooks, meetService } from './doctor-service.ts'
import { checkConfig, checkDisk, checkFileSystem, checkModes, checkNode, checkRates } from './doctor-setup.ts'
import { checkSupplier } from './doctor-supplier.ts'
import { exitCodes } from './exit-codes.ts'
import type { Io, Program, Session } from './program.ts'
import { proseWidth, shareOptions } from './service-command.ts'
import { wrap } from './table.ts'

/** One thing that was looked at. `fail`: it does not work. `warn`: it works, and a person should know. */
export interface Finding {
  check: string
  level: 'ok' | 'warn' | 'fail'
  /** What is so, and why. */
  message: string
  /** What to do about it. */
  mend?: string
}

/** Takes findings as they are made. */
export type Report = (level: Finding['level'], check: string, message: string, mend?: string) => void

export interface Visit {
  io: Io
  /** Undefined when there is none, or when it has faults. */
  config: Config | undefined
  report: Report
}

/** `doctor`: walks through a live set-up from the inside out and names the cause of whatever is wrong. */
export function addDoctor(root: Command, { io, program, end }: Session): void {
  const doctor = root.command('doctor').description('check a live set-up end to end; change nothing')
  shareOptions(doctor)
  doctor.option('--url <address>', 'address of the service, else QUAYSIDE_URL, else the configuration')
  doctor.option('--token <token>', 'token, else QUAYSIDE_TOKEN, else the owner token')
  doctor.addHelpText('after', EXAMPLES)
  doctor.action(async (options: { config?: string; url?: string; token?: string; json?: true }) => {
    const findings: Finding[] = []
    const report: Report = (level, check, message, mend) => {
      const finding: Finding = { check, level, message, ...(mend === undefined ? {} : { mend }) }
      findings.push(finding)
      if (!options.json) io.stdout.write(findingText(finding, proseWidth(io)))
    }
    await visit({ io, program }, options, report)
    const failed = findings.filter(({ level }) => level === 'fail').length
    const warned = findings.filter(({ level }) => level === 'warn').length
    if (options.json) io.stdout.write(`${JSON.stringify({ healthy: failed === 0, findings }, undefined, 2)}\n`)
    else io.stdout.write(`\n${failed === 0 ? 'Nothing fails' : `${failed} failed`}, ${warned} to know about.\n`)
    end(failed === 0 ? exitCodes.ok : exitCodes.failed)
  })
}

const EXAMPLES = `
It reads and connects, and sends nothing that costs or changes anything. Without
a running service, the checks that need one are left out.

Examples:
  quayside doctor
  quayside doctor --json | jq '.findings[] | select(.level == "fail")'`

/** In the order in which things depend on each other: the first fault is most likely the cause of those below it. */
async function visit(
  { io, program }: { io: Io; program: Program },
  options: { config?: string; url?: string; token?: string },
  report: Report,
) {
  const source = configFileOf(options.config, io.env)
  checkNode(report)
  const config = checkConfig(source, io.env, report)
  checkModes(source?.file, report)
  const inspection = config && (await checkKey(config, program, report))
  if (config) checkRates(config, io.now(), report)
  for (const warning of config ? clearTextWarnings(config) : []) report('warn', 'encryption', warning, ENCRYPT)
  if (inspection) checkSync(inspection, io.now(), report)
  if (config && inspection) checkRules(config, inspection, report)
  const visited: Visit = { io, config, report }
  const service = await meetService(options, io.env)
  const supplier = await checkSupplier(visited)
  try {
    await checkRecords(visited, supplier)
    await checkLists(visited, supplier)
    await checkWebhooks(visited, supplier, service)
    await checkPublicUrl(visited)
    await checkDuties(visited, service)
    await checkCallbacks(visited)
  } finally {
    await supplier?.close().catch((error: unknown) => report('warn', 'supplier', messageOf(error)))
  }
  checkFileSystem(source?.file, report)
  checkDisk(source?.file, report)
}

const MARKS = { ok: 'ok  ', warn: 'WARN', fail: 'FAIL' }

function findingText({ level, check, message, mend }: Finding, width: number): string {
  const lines = wrap(plain(`${check}: ${message}`), width - 6)
  const mending = mend === undefined ? [] : wrap(plain(`-> ${mend}`), width - 6)
  return `${MARKS[level]}  ${[...lines, ...mending].join('\n      ')}\n`
}
