/** What a release is handed out as: package, list of what is in it, document of the API, words for people, and checksums. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { apiDocument } from '../support/api-document.ts'
import { partOf } from './changelog.ts'

/** The text of the release page; it is no artefact itself. */
export const NOTES = 'notes.md'

/**
 * Makes the artefacts of the version that `package.json` has. It needs no registry.
 *
 * @param root of the repository
 * @param folder where they go; what is there is removed
 * @returns the names of the artefacts, `SHA256SUMS` last
 * @throws Error when npm fails, or when the list of packages would name a registry
 */
export function makeArtefacts(root: string, folder: string): string[] {
  const read = (file: string) => readFileSync(path.join(root, file), 'utf8')
  const write = (name: string, text: string) => writeFileSync(path.join(folder, name), text)
  const { name, version } = JSON.parse(read('package.json')) as { name: string; version: string }
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })

  // `.npmrc` lets no script run; the one of this package makes what is packed.
  const quietly = ['--silent', '--ignore-scripts=false', '--foreground-scripts=false']
  npm(root, 'pack', ...quietly, `--pack-destination=${folder}`)
  write(`${name}-${version}.cdx.json`, componentsOf(root, name))
  write(`openapi-${version}.json`, `${JSON.stringify(apiDocument, undefined, 2)}\n`)

  const artefacts = readdirSync(folder).sort()
  const sums = artefacts.map((file) => `${sha256(readFileSync(path.join(folder, file)))}  ${file}\n`)
  write('SHA256SUMS', sums.join(''))
  write(NOTES, `${partOf(read('CHANGELOG.md'), `## ${version}`)}\n`)
  return [...artefacts, 'SHA256SUMS']
}

const npm = (cwd: string, ...given: string[]): string =>
  execFileSync('npm', given, { cwd, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024, stdio: 'pipe' })

interface Lock {
  packages: Record<string, { dev?: boolean; devOptional?: boolean; devDependencies?: object }>
}

/**
 * The list of packages that users get, of every platform, in CycloneDX. With `--omit=dev`, npm 11 also leaves out packages that
 * both users and development need, such as zod: so npm reads a lock file that has nothing of development.
 */
function componentsOf(root: string, name: string): string {
  const read = (file: string) => JSON.parse(readFileSync(path.join(root, file), 'utf8'))
  const { devDependencies: _, ...manifest } = read('package.json')
  const lock: Lock = read('package-lock.json')
  for (const [at, { dev, devOptional }] of Object.entries(lock.packages)) {
    if (dev || devOptional) delete lock.packages[at]
  }
  delete lock.packages['']?.devDependencies
  const parent = mkdtempSync(path.join(tmpdir(), 'quayside-sbom-'))
  try {
    // npm names what it describes after its folder.
    const folder = path.join(parent, name)
    mkdirSync(folder)
    writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest))
    writeFileSync(path.join(folder, 'package-lock.json'), JSON.stringify(lock))
    const printed = npm(folder, 'sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application')
    if (printed.includes('"distribution"')) throw new Error(NAMES_A_REGISTRY)
    const components = JSON.parse(printed)
    // The same version has the same list, whenever it is made.
    delete components.serialNumber
    delete components.metadata.timestamp
    return `${JSON.stringify(components, undefined, 2)}\n`
  } finally {
    rmSync(parent, { recursive: true })
  }
}

const NAMES_A_REGISTRY =
  'package-lock.json names the registry that its packages came from: make it again with --omit-lockfile-registry-resolved'

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
