/** Servers as tests start them: each answer is held against the OpenAPI document, and a fault fails the test at its end. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { openapiOf } from '../../src/sandbox/openapi.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/server.ts'
import { apiDocument } from './api-document.ts'
import { type Held, hold } from './contract.ts'

const MESSAGE = 'answers that are not as the OpenAPI document says'

/** The sandbox, held to its document until it is closed. */
export async function startCheckedSandbox(options: SandboxOptions): Promise<Sandbox & { held: Held }> {
  const sandbox = await startSandbox(options)
  const held = hold(Number(new URL(sandbox.baseUrl).port), '/v1', openapiOf(options.dialect))
  const close = async (): Promise<void> => {
    const asked = sandbox.faults.list().some(({ retryAfter }) => retryAfter === null)
    await sandbox.close()
    // One fault leaves out what the document promises: to do that is what it is for.
    const faults = held.faults.filter((fault) => !(asked && fault.includes('429: retry-after: missing')))
    expect(faults, MESSAGE).toEqual([])
  }
  return { ...sandbox, held, close }
}

/**
 * What a service in a process of its own needs, beside its command, to write down its faults. The document is made here:
 * each start would load the whole API once more to make it.
 */
export function checkedService(port: number, faultsFile: string) {
  const documentFile = `${faultsFile}.document.json`
  writeFileSync(documentFile, JSON.stringify(apiDocument))
  return {
    args: ['../../src/quick-imports.js', 'checked-service.ts'].flatMap((name) => [
      '--import',
      fileURLToPath(new URL(name, import.meta.url)),
    ]),
    env: { CHECKED_PORT: String(port), CHECKED_DOCUMENT: documentFile, CHECKED_FAULTS: faultsFile },
  }
}

/** Fails when a service has written down a fault. */
export function expectNoFaults(faultsFile: string): void {
  let faults = ''
  try {
    faults = readFileSync(faultsFile, 'utf8')
  } catch {
    // No file: no fault.
  }
  expect(faults, MESSAGE).toBe('')
}
