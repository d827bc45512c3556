/** Loaded into a service under test before anything else: writes each answer that is not as our document says to a file. */
import { appendFileSync } from 'node:fs'
import { apiDocument, hold } from './contract.ts'

const { CHECKED_PORT = '', CHECKED_FAULTS = '' } = process.env
hold(Number(CHECKED_PORT), '/api/v1', apiDocument, ['/docs'], (fault) => appendFileSync(CHECKED_FAULTS, `${fault}\n`))
