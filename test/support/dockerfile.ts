/**
 * Carries out the steps of a Dockerfile without an engine: every stage is a folder, and what is an absolute path in the
 * image is a path under that folder. It knows the instructions that ours has, and stops at any other.
 */
import { execFile } from 'node:child_process'
import { chownSync, constants, copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

export interface Image {
  /** The folder that is the image's root. */
  root: string
  env: Record<string, string>
  /** Where the process starts: a path of this machine, as in the three commands. */
  workdir: string
  user: string
  entrypoint: string[]
  cmd: string[]
  healthcheck: string[]
  volumes: string[]
  exposed: string[]
  stopSignal: string
  labels: string[]
}

export interface Build {
  /** Text of the Dockerfile. */
  text: string
  /** The folder that COPY reads from. */
  context: string
  /** Where the stages are made. */
  folder: string
  /** The `node` that stands for the one of the base image. */
  node: string
  /** Who owns what `--chown` gives away; undefined: that is impossible, because the builder is not root. */
  owner: number | undefined
}

/** @returns the last stage */
export async function buildImage({ text, context, folder, node, owner }: Build): Promise<Image> {
  const stages = new Map<string, Image>()
  const isIgnored = ignoreOf(readFileSync(path.join(context, '.dockerignore'), 'utf8'))
  let image: Image | undefined
  for (const [instruction, rest] of instructionsOf(text)) {
    if (instruction === 'FROM') {
      const [, base = '', name = `stage-${stages.size}`] = /^(\S+)(?: AS (\S+))?$/.exec(rest) ?? []
      if (!/^node:24\b/.test(base)) throw new Error(`nothing here stands for the base image ${base}`)
      image = emptyStage(path.join(folder, name), node)
      stages.set(name, image)
    } else if (image) {
      await step(image, instruction, rest)
    }
  }
  if (!image) throw new Error('a Dockerfile begins with FROM')
  return image

  async function step(stage: Image, instruction: string, rest: string): Promise<void> {
    const inside = (text: string): string => text.replaceAll(/(?<![^\s=])\/(?=[a-z])/g, `${stage.root}/`)
    const exec = (): string[] => (JSON.parse(rest.slice(rest.indexOf('['))) as string[]).map(inside)
    switch (instruction) {
      case 'WORKDIR':
        stage.workdir = path.resolve(stage.workdir, inside(rest))
        mkdirSync(stage.workdir, { recursive: true })
        return
      case 'COPY':
        return copy(stage, rest.split(/\s+/))
      case 'RUN': {
        const base = { ...process.env, ...WITHOUT_PATIENCE, PATH: `${stage.root}/usr/local/bin:${process.env.PATH}` }
        const env = { ...base, ...stage.env }
        await promisify(execFile)('sh', ['-c', inside(rest)], { cwd: stage.workdir, env })
        return
      }
      case 'ENV':
        for (const [, name = '', value = ''] of rest.matchAll(/([A-Z_]+)=(\S*)/g)) stage.env[name] = inside(value)
        return
      case 'HEALTHCHECK':
        stage.healthcheck = exec()
        return
      case 'ENTRYPOINT':
        stage.entrypoint = exec()
        return
      case 'CMD':
        stage.cmd = exec()
        return
      case 'USER':
        stage.user = rest
        return
      case 'VOLUME':
        stage.volumes.push(inside(rest))
        return
      case 'EXPOSE':
        stage.exposed.push(rest)
        return
      case 'STOPSIGNAL':
        stage.stopSignal = rest
        return
      case 'LABEL':
        stage.labels.push(...[...rest.matchAll(/([a-z.]+)=/g)].map(([, name = '']) => name))
        return
      default:
        throw new Error(`nothing here carries out ${instruction}`)
    }
  }

  /** A folder is copied as its contents, a file under its own name when the target is a folder. */
  function copy(stage: Image, words: string[]): void {
    const flags = new Map(
      words.filter((word) => word.startsWith('--')).map((word) => word.split('=') as [string, string]),
    )
    const places = words.filter((word) => !word.startsWith('--'))
    const from = flags.get('--from')
    const source = from === undefined ? context : stages.get(from)?.root
    const target = places.pop() ?? ''
    if (source === undefined) throw new Error(`there is no stage ${from}`)
    for (const place of places) {
      const origin = path.join(source, place)
      const base = target.startsWith('/') ? path.join(stage.root, target) : path.join(stage.workdir, target)
      const isFolder = statSync(origin).isDirectory()
      const end = !isFolder && target.endsWith('/') ? path.join(base, path.basename(place)) : base
      const filter = (file: string) => from !== undefined || !isIgnored(path.relative(context, file))
      cpSync(origin, end, { recursive: true, filter, verbatimSymlinks: true })
      if (!existsSync(end)) throw new Error(`COPY ${place}: the ignore file leaves it out`)
      if (flags.has('--chown') && owner !== undefined) chownSync(end, owner, owner)
    }
  }
}

/** An absent registry is noticed in seconds; npm's own settings try for minutes. */
const WITHOUT_PATIENCE = { npm_config_fetch_retries: '1', npm_config_fetch_retry_mintimeout: '1000' }

/** What a `.dockerignore` of plain paths and `*` leaves out: the last line that names a path or a parent of it decides. */
export function ignoreOf(text: string): (file: string) => boolean {
  const rules = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return (file) => {
    let ignored = false
    for (const rule of rules) {
      const pattern = rule.replace('!', '')
      if (pattern === '*' || file === pattern || file.startsWith(`${pattern}/`)) ignored = !rule.startsWith('!')
    }
    return ignored
  }
}

/** Instructions with their continuation lines joined. */
const instructionsOf = (text: string): [instruction: string, rest: string][] =>
  text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1).trim()])

/** A stage as its base image leaves it: of everything that it brings, only its Node matters here. */
function emptyStage(root: string, node: string): Image {
  mkdirSync(path.join(root, 'usr/local/bin'), { recursive: true })
  copyFileSync(node, path.join(root, 'usr/local/bin/node'), constants.COPYFILE_FICLONE)
  return {
    root,
    env: {},
    workdir: root,
    user: 'root',
    entrypoint: [],
    cmd: [],
    healthcheck: [],
    volumes: [],
    exposed: [],
    stopSignal: '',
    labels: [],
  }
}
