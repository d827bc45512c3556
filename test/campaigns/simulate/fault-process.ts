/** Faults of the processes and of the machine that they run on. */
import { createIds } from '../../../src/ids.ts'
import { noteRestore } from '../../../src/reconciliation/restore.ts'
import type { Placed } from './customers.ts'
import { attimes, type Fault, type Scene } from './fault.ts'
import { orderOneMore } from './market.ts'
import type { DeathPoint } from './process.ts'
import { HOUR, MINUTE } from './world.ts'

const points: DeathPoint[] = [
  // The two instants around the intent come twice: a process that dies there leaves the most in doubt.
  ...(['intending', 'intended', 'intending', 'intended', 'answered', 'recorded', 'looked_up', 'read'] as const),
  ...(['pushing', 'pushed', 'noted', 'committing', 'committed'] as const),
]

const killed: Fault = {
  id: 'F1',
  what: 'kill -9 at any instant',
  begin: (scene) =>
    attimes(scene, scene.chance.between(1, 4), () => {
      const { host } = scene.world
      const victim = host.alive()[0]
      if (!victim) return
      host.kill(victim)
      scene.fired()
    }),
}

const killedAtPoint: Fault = {
  id: 'F2',
  what: 'kill -9 at a named point, right before or after a commit, a send or an answer',
  begin: ({ world, chance, spanMs, fired }) => {
    const { host, road, timeline } = world
    const where = chance.pick([...points, 'written', 'heard', 'acknowledged', 'acknowledged', 'acknowledged'] as const)
    const often = where === 'committing' || where === 'committed'
    let lives = chance.between(1, 3)
    let countdown = often ? chance.between(1, 60) : chance.between(1, 3)
    let died = false
    const dies = (): boolean => {
      countdown -= 1
      if (countdown > 0 || lives === 0) return false
      lives -= 1
      died = true
      countdown = often ? chance.between(1, 60) : chance.between(1, 3)
      fired()
      return true
    }
    // A point that no process reaches for half of the time is given up for one that is met all the time.
    const late = timeline.now() + spanMs / 2
    const atPoint = (point: DeathPoint): boolean =>
      (point === where || (point === 'committed' && !died && timeline.now() > late)) && dies()
    const onRoad = (stage: 'written' | 'heard', from: string, key: string | undefined): void => {
      if (where !== stage || key === undefined || !dies()) return
      const victim = host.alive().find(({ name }) => name === from)
      if (victim) host.kill(victim)
    }
    const watcher = {
      written: ({ from, key }: { from: string; key: string | undefined }) => onRoad('written', from, key),
      ended: ({ from, key }: { from: string; key: string | undefined }) => onRoad('heard', from, key),
    }
    host.faults.diesAt.add(atPoint)
    road.watchers.add(watcher)
    return () => {
      host.faults.diesAt.delete(atPoint)
      road.watchers.delete(watcher)
    }
  },
}

const clockJumps: Fault = {
  id: 'F25',
  what: 'the clock of the machine jumps, forward or back, by seconds, an hour or days',
  begin: ({ world, chance, spanMs, fired, watch }) => {
    const { host, timeline } = world
    const set = (ms: number): void => {
      const [victim] = host.alive()
      // A machine that is started again with another clock: no process saw it jump.
      if (victim && chance.odds(0.3)) host.kill(victim)
      host.setClock(ms)
      watch.clockMoved()
      world.log.add('machine', 'clock', { offsetMs: ms })
      fired()
    }
    set(chance.pick([-48 * HOUR, -HOUR, -90_000, 30_000, 11 * MINUTE, HOUR, 48 * HOUR]))
    const stop = timeline.after(chance.between(MINUTE, spanMs), () => set(chance.pick([0, 0, 2_000])))
    return () => {
      stop()
      if (host.clockOffsetMs() !== 0) set(0)
    }
  },
}

const pauses: Fault = {
  id: 'F26',
  what: 'the process sleeps for 1 to 300 s, also past its lease, also right before it sends',
  begin: (scene) => {
    const { world, chance, fired } = scene
    const { host } = world
    const pause = (): void => {
      const victim = host.alive()[0]
      if (!victim || victim.life.isPaused()) return
      // Half of them are as long as a lease is nearly over afterwards.
      const ms = chance.odds(0.5) ? chance.between(1_000, 300_000) : chance.between(25_000, 150_000)
      world.log.add(victim.name, 'paused', { ms })
      victim.life.pause(ms)
      fired()
    }
    let left = chance.between(0, 3)
    const where = chance.odds(0.4) ? 'intended' : chance.pick(points)
    const atPoint = (point: DeathPoint): boolean => {
      if (point === where && left > 0 && chance.odds(0.3)) {
        left -= 1
        pause()
      }
      return false
    }
    host.faults.diesAt.add(atPoint)
    const stop = attimes(scene, chance.between(1, 3), pause)
    return () => {
      stop()
      host.faults.diesAt.delete(atPoint)
    }
  },
}

const twoWorkers: Fault = {
  id: 'F27',
  what: 'two workers on one database',
  lasting: true,
  onlyBackend: 'a shop knows no repeat: two workers may read at the same instant that it lacks a note',
  begin: ({ supervisor, world, fired }) => {
    supervisor.want(2)
    fired()
    return () => {
      supervisor.want(1)
      const [, second] = world.host.alive()
      if (second) world.host.kill(second)
    }
  },
}

const stopped: Fault = {
  id: 'F31',
  what: 'SIGTERM in the middle of things, and a start soon after',
  begin: (scene) =>
    attimes(scene, scene.chance.between(1, 3), () => {
      const { host } = scene.world
      const victim = host.alive().find(({ stopping }) => !stopping())
      if (!victim) return
      scene.fired()
      void host.stop(victim, scene.chance.pick([0, 2_000, 10_000]))
    }),
}

const restored: Fault = {
  id: 'F9',
  what: 'an older copy of the database takes its place, by the command or without a word',
  lasting: true,
  begin: (scene) => {
    const { world, chance, spanMs, supervisor, customers, fired } = scene
    const { host, timeline, log } = world
    let copy: Buffer | undefined
    let waits = false
    const takeAt = chance.between(0, Math.floor(spanMs / 4))
    /** Copies with purchases that were not sent yet are the ones that hurt: taken again until there is one. */
    const take = (left: number): void => {
      if (waits || left === 0) return
      copy = host.connection().serialize()
      waits = host.connection().prepare(`select 1 from purchases where state = 'waiting'`).get() !== undefined
      stopTake = timeline.after(spanMs / 40, () => take(left - 1))
    }
    let stopTake = timeline.after(takeAt, () => take(chance.between(1, 12)))
    const putBack = async (): Promise<void> => {
      if (!copy) return
      supervisor.hold()
      for (const process of host.alive()) host.kill(process)
      host.load(copy)
      world.restoredAt = timeline.now()
      log.add('machine', 'restored')
      for (const tell of world.restored) tell()
      if (chance.odds(0.5)) {
        const parts = { db: host.engine(), now: timeline.now, newId: createIds(timeline.now, chance.bytes) }
        const epochMin = host.marker.read()?.epoch ?? 0
        const { epoch } = await noteRestore(parts, { cause: 'restored', epochMin, actor: 'operator' })
        await host.marker.begin({ epoch, attempt: null })
      }
      fired()
      supervisor.release()
      timeline.after(chance.between(1_000, 10 * MINUTE), customers.handInAgain)
    }
    const putBackMs = chance.between(Math.floor(spanMs * 0.4), spanMs - 1)
    const stopPut = timeline.after(putBackMs, () => void putBack())
    const stopCancel = chance.odds(0.5) ? cancelLaterTry(scene, putBackMs) : () => {}
    return () => {
      stopTake()
      stopPut()
      stopCancel()
    }
  },
}

/** An order that the copy does not know: refused at first, bought as a later generation, cancelled while it is open. */
function cancelLaterTry(scene: Scene, putBackMs: number): () => void {
  const { timeline, supplier } = scene.world
  const { customers } = scene
  let order: Placed | undefined
  const stops = [
    timeline.after(putBackMs - 4 * MINUTE, () => {
      supplier.faults.add({ fault: 'out-of-stock', times: 1 })
      supplier.faults.add({ fault: 'hold-open', times: 1 })
      orderOneMore(scene)
      order = customers.placed.at(-1)
    }),
    timeline.after(putBackMs - 2_000, () => {
      if (order) void customers.cancel(order)
    }),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}

export const processFaults: Fault[] = [killed, killedAtPoint, restored, clockJumps, pauses, twoWorkers, stopped]
