/** A process around the service, such as the supplier: killed and started again at its old address. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'

export interface Party {
  /** kill -9, and up again; resolves when it answers. */
  restart: () => Promise<void>
  tell: (message: object) => void
  close: () => Promise<void>
}

/** @param script beside this file; prints nothing, says `ready` over the channel of the fork, ends with it */
export async function startParty(script: string, settings: object): Promise<Party> {
  const start = async (): Promise<ChildProcess> => {
    const child = fork(path.join(import.meta.dirname, script), [JSON.stringify(settings)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const [first] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [unknown]
    if (first !== 'ready') throw new Error(`${script} did not start: ${String(first)}`)
    return child
  }
  const end = async (child: ChildProcess): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  let child = await start()
  return {
    restart: async () => {
      await end(child)
      child = await start()
    },
    tell: (message) => void (child.connected && child.send(message, () => {})),
    close: () => end(child),
  }
}
