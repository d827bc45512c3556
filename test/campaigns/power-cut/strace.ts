/** What a real process did to the files of one folder and to its sockets, in the order in which the kernel did it. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'

/** Places in the log: a call that ended before another began, came before it. */
interface Span {
  began: number
  ended: number
}

export type Write = Span & { kind: 'write'; file: string; offset: number; data: Buffer }
export type Truncate = Span & { kind: 'truncate'; file: string; length: number }
export type Entry = Span & { kind: 'create' | 'unlink'; file: string }
/** An fsync or fdatasync; of the folder itself when `file` is empty. */
export type Sync = Span & { kind: 'sync'; file: string }
/** Bytes that came from, or went to, a socket or a pipe. */
export type Speech = Span & { kind: 'heard' | 'said'; peer: string; text: string }

/** One system call. */
export type Call = Write | Truncate | Entry | Sync | Speech

/** The calls that change files, and those through which a process speaks. Any other way into a file must stop the run. */
const TRACED =
  'openat,read,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,sync_file_range,ftruncate,fallocate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mmap'

/** Bytes of a string that strace prints; four times a page of the database. */
const SHOWN_BYTES = 16_384

/** Whether this machine has strace and lets it trace. */
export const canTrace = (): boolean => spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0

/**
 * Starts a program under strace. It is to end by itself when its standard input ends.
 *
 * @param log where strace writes
 * @throws when strace cannot be started or the program fails
 */
export function traced(log: string, program: string, args: string[]) {
  const options = ['-f', '-y', '-xx', '-s', String(SHOWN_BYTES), '--seccomp-bpf', '-e', `trace=${TRACED}`, '-o', log]
  const child = spawn('strace', [...options, process.execPath, program, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit').then(([code]) => {
    if (code !== 0) throw new Error(`the traced program ended with ${String(code)}`)
  })
  return {
    stdout: child.stdout as Readable,
    /** Asks the program to end and waits for it. */
    end: async (): Promise<void> => {
      const stdin: Writable = child.stdin
      stdin.end()
      await ended
    },
    ended,
    kill: () => child.kill('SIGKILL'),
  }
}

/**
 * Reads a log.
 *
 * @param folder whose files are followed; it was empty when the program started
 * @throws when a file was changed in a way that is not followed here: an image would then be wrong without a word
 */
export function readCalls(log: string, folder: string): Call[] {
  const calls: Call[] = []
  const open = new Map<string, { text: string; began: number }>()
  const existing = new Set<string>()
  const lines = readFileSync(log, 'latin1').split('\n')
  for (const [place, line] of lines.entries()) {
    const [, pid = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    if (rest.endsWith(' <unfinished ...>')) {
      open.set(pid, { text: rest.slice(0, -' <unfinished ...>'.length), began: place })
      continue
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)
    const whole = resumed ? `${open.get(pid)?.text ?? ''}${resumed[1]}` : rest
    const began = resumed ? (open.get(pid)?.began ?? place) : place
    const [, name = '', args = '', result = ''] = /^(\w+)\((.*)\) += (-?\w+)/.exec(whole) ?? []
    if (name === '' || result.startsWith('-')) continue
    for (const call of readCall(name, args, Number.parseInt(result, 10), folder)) {
      if (call.kind === 'create') {
        if (existing.has(call.file)) continue
        existing.add(call.file)
      }
      if (call.kind === 'unlink') existing.delete(call.file)
      calls.push({ ...call, began, ended: place })
    }
  }
  // Unfinished calls are printed where they began, and finished ones where they ended: sorted, one order for all.
  return calls.sort((a, b) => a.ended - b.ended)
}

type WithoutSpan<T> = T extends unknown ? Omit<T, 'began' | 'ended'> : never

/** @returns nothing for a call that concerns neither the folder nor a peer */
function readCall(name: string, args: string, result: number, folder: string): WithoutSpan<Call>[] {
  if (name === 'openat' || name.startsWith('unlink')) return readEntry(name, args, folder)
  const descriptors = [...args.matchAll(/\d+<((?:\\x[0-9a-f]{2})+)>/g)].map(([, path = '']) => decode(path).toString())
  if (name.startsWith('rename') || name.startsWith('link')) {
    const paths = strings(args).map((path) => path.toString())
    if ([...paths, ...descriptors].some((path) => path.startsWith(folder))) notFollowed(name, args)
    return []
  }
  const [path = ''] = descriptors
  if (/^(socket|pipe|TCP)/.test(path)) return readSpeech(name, path, args)
  const file = followed(path, folder)
  if (file === undefined) return []
  if (name === 'read') return []
  if (name === 'fsync' || name === 'fdatasync') return [{ kind: 'sync', file }]
  if (name === 'ftruncate') return [{ kind: 'truncate', file, length: Number(/, (\d+)$/.exec(args)?.[1]) }]
  if (name === 'mmap' && !(args.includes('MAP_SHARED') && args.includes('PROT_WRITE'))) return []
  if (name !== 'pwrite64') notFollowed(name, args)
  const [data = Buffer.alloc(0)] = strings(args)
  const offset = Number(/, (\d+)$/.exec(args)?.[1])
  if (data.length < result) notFollowed('a longer write', args)
  return [{ kind: 'write', file, offset, data: data.subarray(0, result) }]
}

/** A file that is made or removed. */
function readEntry(name: string, args: string, folder: string): WithoutSpan<Call>[] {
  const file = followed(strings(args)[0]?.toString() ?? '', folder)
  if (file === undefined) return []
  if (name !== 'openat') return [{ kind: 'unlink', file }]
  const truncated: WithoutSpan<Call>[] = args.includes('O_TRUNC') ? [{ kind: 'truncate', file, length: 0 }] : []
  return args.includes('O_CREAT') ? [{ kind: 'create', file }, ...truncated] : truncated
}

function readSpeech(name: string, peer: string, args: string): WithoutSpan<Call>[] {
  const kind = name === 'read' ? 'heard' : 'said'
  return name === 'read' || name.startsWith('write')
    ? [{ kind, peer, text: Buffer.concat(strings(args)).toString() }]
    : []
}

/**
 * The name of a file that survives a power cut; empty for the folder itself, undefined for what does not matter: other
 * files, the empty lock file, and the shared-memory index, which SQLite rebuilds from the log.
 */
function followed(path: string, folder: string): string | undefined {
  if (path === folder) return ''
  const name = path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : undefined
  return name === undefined || name.endsWith('-shm') || name.includes('.lock') ? undefined : name
}

function notFollowed(what: string, args: string): never {
  throw new Error(`the trace shows ${what} on a followed file: ${args.slice(0, 200)}`)
}

const strings = (args: string): Buffer[] =>
  [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, text = '']) => decode(text))

const decode = (text: string): Buffer => Buffer.from(text.replaceAll('\\x', ''), 'hex')
