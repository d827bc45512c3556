/** What a traced process acknowledged, and whether the disk had it by then. */
import type { Call } from './strace.ts'

/** Something acknowledged: its name is written to the log of the database as it is, so that its frame can be found. */
export interface Answer {
  name: string
  /** Place in the log at which the first byte of the acknowledgement may have left. */
  at: number
}

/** The header with which a delivery of the default dialect names itself. */
const NAMED = /x-service-delivery-id: (\S+)/i

/** Deliveries answered 200: asked on a socket, answered on the same. */
export function acknowledgedDeliveries(calls: Call[]): Answer[] {
  const asked = new Map<string, string>()
  const answers: Answer[] = []
  for (const call of calls) {
    if (call.kind === 'heard') {
      const name = NAMED.exec(call.text)?.[1]
      if (name !== undefined) asked.set(call.peer, name)
    }
    if (call.kind !== 'said' || !call.text.startsWith('HTTP/1.1 ')) continue
    const name = asked.get(call.peer)
    asked.delete(call.peer)
    if (name !== undefined && call.text.startsWith('HTTP/1.1 200 ')) answers.push({ name, at: call.began })
  }
  return answers
}

/** Names that a program printed, one a line, each after its commit had returned. */
export const acknowledgedNames = (calls: Call[], form: RegExp): Answer[] =>
  calls.flatMap((call) => {
    const name = call.kind === 'said' ? form.exec(call.text)?.[0] : undefined
    return name === undefined ? [] : [{ name, at: call.began }]
  })

/** Fsyncs of the write-ahead log that ended within the program's run. */
export const syncsOf = (calls: Call[], file: string): number =>
  calls.filter((call) => call.kind === 'sync' && call.file === file).length

/** Bytes of a frame's header and of the page after it: SQLite's file format, "The WAL File Format". */
const FRAME_HEADER = 24

/**
 * Those that were acknowledged too early: between the end of the last write of their commit and the first byte of their
 * acknowledgement no fsync of the log began and ended.
 */
export function acknowledgedEarly(calls: Call[], file: string, answers: Answer[]): Answer[] {
  const frames: { text: string; ended: number; commits: boolean }[] = []
  const syncs: Call[] = []
  let commits = false
  for (const call of calls) {
    if (call.kind === 'sync' && call.file === file) syncs.push(call)
    // At the beginning of the file is its own header, which belongs to no frame.
    if (call.kind !== 'write' || call.file !== file || call.offset === 0) continue
    // The last frame of a transaction names the size of the database after it; the others have 0 there.
    if (call.data.length === FRAME_HEADER) commits = call.data.readUInt32BE(4) > 0
    else frames.push({ text: call.data.toString('latin1'), ended: call.ended, commits })
  }
  return answers.filter(({ name, at }) => {
    const first = frames.findIndex(({ text }) => text.includes(name))
    const commit = first < 0 ? undefined : frames.slice(first).find((frame) => frame.commits)
    return commit === undefined || !syncs.some((sync) => sync.began > commit.ended && sync.ended < at)
  })
}
