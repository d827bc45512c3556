/**
 * One stream of server-sent events for each page that a person looks at. A stream says that something was stored, and the page then
 * reads its live parts. It also beats, so that a page soon knows when the service is gone.
 */
import type { Response } from 'express'

export const streamLimits = {
  /** How often the commits are looked at: a page follows within about a second. */
  lookMs: 1_000,
  /** How many looks are between two beats. With each beat the session is checked. */
  beat: 5,
  /** How many looks are between two changes at least: a busy service does not make its pages read without pause. */
  rest: 3,
  /** The most streams of a service, and of a session: a browser has six connections to a host, and needs some for other requests. */
  all: 500,
  ofSession: 4,
  /** A page that does not read its stream is cut off. A beat has 27 bytes. */
  unreadBytes: 16_384,
}

interface Stream {
  response: Response
  session: string
  isSignedIn: () => Promise<boolean>
}

/** @param db `commits`: how many were stored; absent where other processes store too: then each beat says that something may have changed */
export function pageStreams({ commits }: { commits?: () => number }, limits = streamLimits) {
  const open = new Set<Stream>()
  let timer: NodeJS.Timeout | undefined
  let looks = 0
  let said = 0
  let seen = commits?.()
  let forget = (): void => {}

  const end = (stream: Stream): void => {
    stream.response.end()
    close(stream)
  }
  const close = (stream: Stream): void => {
    open.delete(stream)
    if (open.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  const say = (stream: Stream, event: 'beat' | 'changed' | 'over'): void => {
    if (stream.response.writableLength > limits.unreadBytes) stream.response.destroy()
    else stream.response.write(`event: ${event}\ndata: 1\n\n`)
  }
  const look = (): void => {
    looks += 1
    const isBeat = looks % limits.beat === 0
    const now = commits?.()
    const isChanged = commits ? now !== seen && looks - said >= limits.rest : isBeat
    if (isChanged) {
      said = looks
      seen = now
      forget()
    }
    for (const stream of open) {
      if (isChanged) say(stream, 'changed')
      if (isBeat) void beat(stream, isChanged)
    }
  }
  async function beat(stream: Stream, isSaid: boolean): Promise<void> {
    const isSignedIn = await stream.isSignedIn().catch(() => true)
    if (!open.has(stream)) return
    if (!isSignedIn) {
      say(stream, 'over')
      end(stream)
    } else if (!isSaid) say(stream, 'beat')
  }

  return {
    /** Sets what is done before pages read again, such as to forget what was kept for them. */
    before: (does: () => void): void => {
      forget = does
    },
    /** What a page has seen that is drawn now. Its stream begins with what came since then. */
    seen: (): string => String(commits?.() ?? ''),
    /** Opens a stream, or answers 204, after which the page polls. @param from what `seen` was when the page was drawn */
    start: (stream: Stream, from: string): void => {
      const { response, session } = stream
      const own = [...open].filter((other) => other.session === session).length
      if (open.size >= limits.all || own >= limits.ofSession) return void response.status(204).end()
      response.type('text/event-stream').set({ 'x-accel-buffering': 'no', connection: 'close' })
      response.write('retry: 2000\n\n')
      const isCurrent = from === String(commits?.() ?? '')
      if (!isCurrent) forget()
      say(stream, isCurrent ? 'beat' : 'changed')
      open.add(stream)
      response.once('close', () => close(stream))
      // The server keeps a connection that was closed by half. A page that has closed its half is gone.
      response.req.socket.once('end', () => response.destroy())
      if (timer !== undefined) return
      seen = commits?.()
      timer = setInterval(look, limits.lookMs)
      timer.unref()
    },
    /** Ends all streams: the service is being stopped. Their pages ask again. */
    stop: (): void => {
      for (const stream of [...open]) end(stream)
    },
    count: (): number => open.size,
  }
}
