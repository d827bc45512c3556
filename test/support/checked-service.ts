/** Loaded into a service under test before anything else: writes each answer that is not as our document says to a file. */
import { appendFileSync, readFileSync } from 'node:fs'
import { hold } from './contract.ts'

const { CHECKED_PORT = '', CHECKED_DOCUMENT = '', CHECKED_FAULTS = '' } = process.env
const document = JSON.parse(readFileSync(CHECKED_DOCUMENT, 'utf8')) as object
hold(Number(CHECKED_PORT), '/api/v1', document, ['/docs'], (fault) => appendFileSync(CHECKED_FAULTS, `${fault}\n`))
