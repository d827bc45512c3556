/**
 * Images that are built and run without an engine and without a registry of images: by Debian's buildah, in its chroot isolation. That
 * needs root. A container has the network, the processes and the kernel of this machine; its root is a folder of the storage.
 */
import { execFile, spawn } from 'node:child_process'
import { appendFileSync, chmodSync, copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

/** What an image says of itself, as Docker's format names it. */
export interface ImageConfig {
  User: string
  Env: string[]
  Entrypoint: string[]
  Cmd: string[]
  WorkingDir: string
  Volumes: Record<string, object>
  ExposedPorts: Record<string, object>
  Labels: Record<string, string>
  StopSignal: string
  Healthcheck: { Test: [kind: string, ...command: string[]] }
}

export interface RunOptions {
  /** `user:group` in the place of the image's own. */
  user?: string
  env?: Record<string, string>
  /** Folders and files of this machine by their place in the container. */
  volumes?: Record<string, string>
}

/** Where the Node of a base is, and the settings of npm that are for all users. */
const NODE = 'usr/local/bin/node'
const NPM_SETTINGS = '/usr/local/etc/npmrc'
const CERTIFICATES = '/etc/ssl/certs/of-this-machine.crt'

/** @param folder where buildah keeps all that it makes; the caller removes it */
export function openBuildah(folder: string) {
  const places = ['storage', 'run', 'tmp'].map((name) => path.join(folder, name))
  const [storage = '', run = '', temporary = ''] = places
  for (const place of places) mkdirSync(place)
  const options = ['--root', storage, '--runroot', run, '--storage-driver', 'vfs']
  const env = { ...process.env, TMPDIR: temporary }

  const call = async (program: string, ...args: string[]): Promise<string> =>
    (await promisify(execFile)(program, args, { cwd: folder, env, maxBuffer: 2 ** 26 })).stdout.trim()
  const buildah = (...args: string[]) => call('buildah', ...options, ...args)
  /** A new container. @returns its name, and the folder that is its root */
  async function containerOf(image: string): Promise<{ name: string; root: string }> {
    const name = await buildah('from', '--pull=never', image)
    return { name, root: await buildah('mount', name) }
  }

  /** Makes an image of Debian's essential packages, this Node, and npm, with the user `node`: what the base of the registry is made of. @returns its root */
  async function makeBase(tag: string): Promise<string> {
    const name = await buildah('from', 'scratch')
    const root = await buildah('mount', name)
    const left = ['man', 'locale', 'doc'].map((what) => `--dpkgopt=path-exclude=/usr/share/${what}/*`)
    await call('mmdebstrap', '--quiet', '--variant=essential', '--include=libstdc++6', ...left, 'bookworm', root)
    await call('npm', 'install', '--silent', '--global', `--prefix=${root}/usr/local`, 'npm@11')
    copyFileSync(process.execPath, path.join(root, NODE))
    chmodSync(path.join(root, NODE), 0o755)
    appendFileSync(path.join(root, 'etc/passwd'), 'node:x:1000:1000::/home/node:/bin/bash\n')
    appendFileSync(path.join(root, 'etc/group'), 'node:x:1000:\n')
    await buildah('commit', '--quiet', name, tag)
    return root
  }

  /** Builds a folder's Dockerfile. What npm needs on this machine is mounted while the steps run. */
  async function build(tag: string, context: string, base?: string): Promise<void> {
    const certificates = process.env.NODE_EXTRA_CA_CERTS
    const settings = path.join(temporary, 'npmrc')
    const registry = await call('npm', 'config', 'get', 'registry')
    writeFileSync(settings, `registry=${registry}\n${certificates ? `cafile=${CERTIFICATES}\n` : ''}`)
    const mounts = [`${settings}:${NPM_SETTINGS}:ro`, ...(certificates ? [`${certificates}:${CERTIFICATES}:ro`] : [])]
    await buildah(
      ...['build', '--quiet', '--isolation=chroot', '--format=docker', '--pull=never', `--tag=${tag}`],
      ...(base === undefined ? [] : [`--build-arg=BASE=${base}`]),
      ...mounts.map((mount) => `--volume=${mount}`),
      context,
    )
  }

  /** Starts a command in a container; several may run in one. */
  function start(container: string, command: string[], { user, env: more = {}, volumes = {} }: RunOptions = {}) {
    const given = [
      ...(user === undefined ? [] : [`--user=${user}`]),
      ...Object.entries(more).map(([name, value]) => `--env=${name}=${value}`),
      ...Object.entries(volumes).map(([inside, outside]) => `--volume=${outside}:${inside}`),
    ]
    const args = [...options, 'run', '--isolation=chroot', ...given, container, '--', ...command]
    const child = spawn('buildah', args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const said = { out: '', err: '' }
    child.stdout.on('data', (chunk) => (said.out += String(chunk)))
    child.stderr.on('data', (chunk) => (said.err += String(chunk)))
    const exit = new Promise<number | null>((resolve) => child.on('close', resolve))
    /** To the command itself, as an engine sends it: buildah would kill it. */
    const signal = (name: NodeJS.Signals) => process.kill(innermost(child.pid ?? 0), name)
    return { child, said, exit, signal }
  }

  return {
    makeBase,
    build,
    containerOf,
    start,
    /** What an image says of itself, and the steps that made it. */
    inspect: async (image: string): Promise<{ config: ImageConfig; history: object[] }> =>
      JSON.parse(await buildah('inspect', '--type=image', image)).Docker,
  }
}

/** The last of the processes that one starts through another: buildah starts a command through two of its own. */
function innermost(pid: number): number {
  const [child] = globSync(`/proc/${pid}/task/*/children`).flatMap(
    (file) => readFileSync(file, 'utf8').match(/\d+/g) ?? [],
  )
  return child === undefined ? pid : innermost(Number(child))
}
