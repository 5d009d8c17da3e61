/** Jobs of every kind for some minutes, while workers, producers, processes of jobs and the store are taken away again and again. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { attack, type Deed } from '../attack.js'
import { forkedProgram } from '../forked-program.js'
import { TickAccount, type TickRow } from '../schedules/tick-account.js'
import type { ChaosGround, StoreFault } from './chaos-ground.js'
import { chaosJudgement, type Judgement } from './chaos-judge.js'
import { type EffectLine, effectLines, monotonicMs } from './effect-lines.js'
import { EverythingCrew } from './everything-crew.js'
import mill, { leaseMs, startsLimit } from './everything-mill.js'
import { type SecondRun, type StoreSpan, secondRuns, settleTimes, unsettledAtKills } from './second-runs-judge.js'

export interface SecondRunsOutcome extends Judgement {
  readonly seconds: number
  readonly deeds: Readonly<Record<string, number>>
  readonly second: readonly SecondRun[]
  readonly ticks: readonly TickRow[]
  readonly twiceTicked: number
  /** From the end of a handler until the store had taken its completion. */
  readonly settleMs: { readonly median: number; readonly p95: number; readonly p99: number }
  /** Of each killed worker: completions that it was not told of yet. */
  readonly unsettled: { readonly mean: number; readonly most: number }
  readonly deaths: readonly string[]
  readonly refusedSettles: number
  readonly failedCalls: Readonly<Record<string, number>>
  readonly left: { readonly waiting: number; readonly dead: number }
}

type Schedule = Awaited<ReturnType<typeof mill.schedules.list>>['schedules'][number]

const [processes, perSecond, slowMs] = [4, 50, 3_000]
const lookMs = 1_000
const everyMs = 1_000
/** Longer than the minute after which a tick counts as missed. */
const gapMs = 65_000
const stopLeases = [0.3, 1.5, 2] as const
const drainMs = 120_000

/** In a process of its own, for which the store and the folder are set. */
export async function drillSecondRuns(
  ground: ChaosGround,
  minutes: number,
  random: () => number,
): Promise<SecondRunsOutcome> {
  const folder = process.env.EVERYTHING_FOLDER!
  const package_ = join(import.meta.dirname, '../..')
  const crew = new EverythingCrew(() => package_)
  const producers = new Producers()
  const storeSpans: StoreSpan[] = []
  const deeds: { [name: string]: number } = {}
  const startedAt = monotonicMs()
  const allMs = minutes * 60_000
  const reached = async (share: number) => {
    await delay(Math.max(0, startedAt + share * allMs - monotonicMs()))
  }
  const times = (perMinute: number) => Math.max(1, Math.round(perMinute * minutes))
  const deed = (name: string, perMinute: number, make: () => Promise<void>, lasts?: true): Deed => ({
    times: times(perMinute),
    async make() {
      await make()
      deeds[name] = (deeds[name] ?? 0) + 1
    },
    ...(lasts && { lasts }),
  })
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)]!
  const onStore = ({ name, times, make }: StoreFault): Deed => ({
    times,
    async make() {
      const from = monotonicMs()
      await make()
      storeSpans.push({ name, from, until: monotonicMs() })
      deeds[name] = (deeds[name] ?? 0) + 1
    },
  })
  /** The processes of isolated jobs: what they have begun and not ended. */
  const killChild = async () => {
    const running = new Set<number>()
    for (const { pid, what, kind } of effectLines(folder))
      if (kind === 'long' && what === 'begun') running.add(pid)
      else if (kind === 'long' && what === 'ended') running.delete(pid)
    const halted = new Set(crew.halts.map(({ pid }) => pid))
    const victim = pick([...running].filter((pid) => !halted.has(pid)))
    if (victim === undefined) return
    try {
      process.kill(victim, 'SIGKILL')
      crew.halts.push({ pid: victim, kind: 'kill', from: monotonicMs(), until: Number.POSITIVE_INFINITY })
    } catch {}
  }
  const seen: Schedule[][] = []
  let isOver = false
  const looking = (async () => {
    while (!isOver) {
      const list = await mill.schedules.list({ limit: 20 }).catch(() => undefined)
      if (list !== undefined) seen.push(list.schedules)
      await delay(lookMs)
    }
  })()
  try {
    await mill.createQueues()
    await Promise.all(Array.from({ length: processes }, () => crew.start()))
    producers.start()
    await Promise.all([
      attack(
        [
          deed('kill -9 of workers', 3, () => crew.killOne(random)),
          deed('SIGSTOPs of workers', 1.7, () => crew.stopOne(random, leaseMs * pick(stopLeases)), true),
          deed('SIGTERMs of workers', 1.5, () => crew.relieveOne(random)),
        ],
        random,
        reached,
      ),
      attack(
        [
          deed('kill -9 of producers', 0.5, () => producers.kill()),
          deed('kill -9 of processes of jobs', 0.5, killChild),
        ],
        random,
        reached,
      ),
      attack(ground.faults.map(onStore), random, reached),
    ])
    await reached(1)
    // A deploy with a gap: nobody works for longer than a minute.
    await crew.end()
    await delay(gapMs)
    deeds['minutes without a worker'] = 1
    await Promise.all(Array.from({ length: processes }, () => crew.start()))
    await producers.end()
    const until = monotonicMs() + drainMs
    while ((await waiting()) > 0 && monotonicMs() < until) await delay(lookMs)
    isOver = true
    await looking
    await crew.end()
    const left = { waiting: await waiting(), dead: (await mill.depths()).reduce((sum, { dead }) => sum + dead, 0) }
    const lines = effectLines(folder)
    const { halts, leaves } = crew
    const evidence = { lines, halts, leaves, storeSpans, leaseMs }
    const settles = settleTimes(lines)
    const unsettled = unsettledAtKills(evidence)
    const at = (part: number) => settles[Math.ceil(part * settles.length) - 1] ?? 0
    const account = accountOf(lines, seen)
    return {
      ...chaosJudgement({ ...evidence, startsLimit }),
      seconds: (monotonicMs() - startedAt) / 1_000,
      deeds,
      second: secondRuns(evidence),
      ticks: account.table(),
      twiceTicked: account.twice,
      settleMs: { median: at(0.5), p95: at(0.95), p99: at(0.99) },
      unsettled: {
        mean: unsettled.reduce((sum, n) => sum + n, 0) / Math.max(1, unsettled.length),
        most: Math.max(0, ...unsettled),
      },
      ...{ deaths: crew.deaths, refusedSettles: crew.refused, failedCalls: Object.fromEntries(crew.failedCalls), left },
    }
  } finally {
    isOver = true
    producers.killAll()
    crew.kill()
    await mill.close()
  }
}

/** A tick counts by its own job; what was left out by the word of a worker, or by the count of the store. */
function accountOf(lines: readonly EffectLine[], seen: readonly (readonly Schedule[])[]): TickAccount {
  const account = new TickAccount(everyMs)
  for (const { what, kind, id, more } of lines) {
    if (kind !== 'ticking') continue
    if (what === 'begun' && more.includes('@')) {
      const [name, tickAt] = more.split('@') as [string, string]
      account.ticked(name, Number(tickAt), id)
    } else if (what === 'told') {
      const [event, tickAt, ticks, reason] = more.split('|')
      if (event === 'schedule.skipped')
        account.told(id, Number(tickAt), Number(ticks), 'overlap, told by schedule.skipped')
      if (event === 'schedule.missed')
        account.told(id, Number(tickAt), Number(ticks), `onMissed (${reason}), told by schedule.missed`)
    }
  }
  for (const records of seen) account.seen(records)
  return account
}

async function waiting(): Promise<number> {
  const depths = await mill.depths().catch(() => undefined)
  if (depths === undefined) return 1
  return depths
    .filter(({ queue }) => queue !== 'ticking')
    .reduce((sum, { ready, scheduled, running }) => sum + ready + scheduled + running, 0)
}

/** The producers: each has a name of its own; a killed one is followed by another. */
class Producers {
  readonly #going = new Set<ChildProcess>()
  #names = 0

  start(): void {
    this.#names += 1
    const args = [String(perSecond), `p${this.#names}-`, String(slowMs)]
    const child = forkedProgram(join(import.meta.dirname, 'everything-producer.ts'), args)
    this.#going.add(child)
  }

  async kill(): Promise<void> {
    this.killAll()
    this.start()
  }

  killAll(): void {
    for (const child of this.#going) child.kill('SIGKILL')
    this.#going.clear()
  }

  async end(): Promise<void> {
    for (const child of this.#going) {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
    }
    this.#going.clear()
  }
}
