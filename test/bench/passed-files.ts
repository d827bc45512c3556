/**
 * Loaded by `--import` before the service: answers each IPC message with the files of `src` in which a function ran since
 * the message before. The top level of a module does not count: it runs when the module is loaded.
 */
import { Session } from 'node:inspector'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCE = new URL('../../src/', import.meta.url).href

const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

process.on('message', () => {
  session.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error) throw error
    const scripts = coverage.result.filter(({ url }) => url.startsWith(SOURCE))
    const passed = scripts.filter(({ functions }) => functions.some((one) => !isTopLevel(one) && hasRun(one)))
    process.send?.(passed.map(({ url }) => path.relative(fileURLToPath(SOURCE), fileURLToPath(url))))
  })
})
// The channel to the bench must not keep a service alive that has stopped.
process.channel?.unref()

interface Ran {
  functionName: string
  ranges: { startOffset: number; count: number }[]
}

const isTopLevel = ({ functionName, ranges }: Ran): boolean => functionName === '' && ranges[0]?.startOffset === 0
const hasRun = ({ ranges }: Ran): boolean => (ranges[0]?.count ?? 0) > 0
