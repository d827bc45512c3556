import path from 'node:path'

/** The folder of the program: a clone, a package that was installed, or `/app` of the image. */
const ROOT = path.resolve(import.meta.dirname, '../..')

/** A word of a command line, quoted where the shell would take it apart. */
export const quoted = (text: string): string =>
  /^[\w.:@%+=,/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/**
 * How a command begins that is typed in this folder: `npx quayside` inside a clone, `quayside` where npm installed the
 * program, else its path, as in the image.
 */
export function programName(root: string, folder: string): string {
  if (root.split(path.sep).includes('node_modules')) return 'quayside'
  const inside = path.relative(root, folder)
  if (inside !== '..' && !inside.startsWith(`..${path.sep}`)) return 'npx quayside'
  return quoted(path.join(root, 'src', 'quayside.js'))
}

const PROGRAM = programName(ROOT, process.cwd())

/** A command of this program as a person can paste it: `doctor` is `npx quayside doctor`. */
export const commandLine = (command: string): string => `${PROGRAM} ${command}`
