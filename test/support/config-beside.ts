import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/**
 * The same configuration for another process on the same database, with a port and a data folder of its own.
 *
 * @param number of the process
 * @returns path of the configuration
 */
export function configBeside(configFile: string, number: number, port: number): string {
  const folder = path.dirname(configFile)
  const dataDir = path.join(folder, `data-${number}`)
  mkdirSync(dataDir)
  const settings = JSON.parse(readFileSync(configFile, 'utf8'))
  const file = path.join(folder, `process-${number}.json`)
  writeFileSync(file, JSON.stringify({ ...settings, listen: { ...settings.listen, port }, dataDir }))
  return file
}
