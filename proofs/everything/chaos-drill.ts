/** The chaos: jobs of every kind on worker processes of two versions, of which and of whose store everything is taken away, again and again. */

import { setTimeout as delay } from 'node:timers/promises'
import { attack, type Deed } from '../attack.js'
import { type ChaosGround, pickBy, type StoreFault } from './chaos-ground.js'
import { chaosJudgement, type Judgement } from './chaos-judge.js'
import { type ChaosJobs, ChaosProducer } from './chaos-producer.js'
import { effectLines } from './effect-lines.js'
import { EverythingCrew } from './everything-crew.js'
import mill, { leaseMs, startsLimit } from './everything-mill.js'

export interface ChaosPlan {
  readonly jobs: ChaosJobs
  readonly processes: number
  readonly kills: number
  readonly killsOfAll: number
  readonly stops: number
  readonly reliefs: number
  readonly reshards: number
  /** Folders of the packages: the one that the workers begin with, and the one that they end with. */
  readonly versions: readonly [from: string, to: string]
  readonly withinMs: number
}

export interface ChaosOutcome extends Judgement {
  readonly seconds: number
  readonly halts: { readonly kills: number; readonly stops: number }
  readonly faults: Readonly<Record<string, number>>
  readonly processes: Readonly<Record<string, number>>
  readonly deaths: readonly string[]
  readonly rejectedEnqueues: number
  readonly refusedSettles: number
  readonly failedCalls: Readonly<Record<string, number>>
  /** What the store still holds at the end: nothing, but for kept results. */
  readonly left: { readonly waiting: number; readonly dead: number }
}

const lookMs = 100
/** In leases: a stop outlasts them, or does not. */
const stopLeases = [0.3, 1.5] as const
const shards = [3, 5, 2, 4]

/** In a process of its own, for which `MILLRACE_STORE` and `EVERYTHING_FOLDER` are set: it enqueues by the same mill as workers. */
export async function drillChaos(
  ground: ChaosGround,
  steps: StoreFault,
  plan: ChaosPlan,
  random: () => number,
): Promise<ChaosOutcome> {
  const { versions, withinMs } = plan
  const pick = pickBy(random)
  const folder = process.env.EVERYTHING_FOLDER!
  const producer = new ChaosProducer(folder, random)
  const all = Object.values(plan.jobs).reduce((sum, count) => sum + count, 0)
  const startedAt = performance.now()
  const shareDone = () => producer.accepted / all
  // A third of the way they are all old, then of either, and new at last.
  const version = () => versions[shareDone() < 1 / 3 || (shareDone() < 2 / 3 && random() < 0.5) ? 0 : 1]
  const crew = new EverythingCrew(version)
  const until = async (what: string, isSo: () => boolean | Promise<boolean>) => {
    while (!(await isSo())) {
      if (performance.now() > startedAt + withinMs) throw new Error(`${what}: not within ${withinMs} ms`)
      await delay(lookMs)
    }
  }
  const faults: Record<string, number> = {}
  const counted = ({ name, times, make }: StoreFault): Deed => ({
    times,
    async make() {
      await make()
      faults[name] = (faults[name] ?? 0) + 1
    },
  })
  const reached = (share: number) =>
    until(`${(share * 100).toFixed(0)} % of all jobs are enqueued`, () => shareDone() >= share)
  const onWorkers: Deed[] = [
    { times: plan.kills, make: () => crew.killOne(random) },
    { times: plan.killsOfAll, make: () => crew.killAll() },
    { times: plan.reliefs, make: () => crew.relieveOne(random) },
    { times: plan.stops, make: () => crew.stopOne(random, leaseMs * pick(stopLeases)), lasts: true },
  ]
  const reshards: StoreFault = { name: 'reshards', times: plan.reshards, make: () => reshard(pick(shards)) }
  try {
    await mill.createQueues()
    await Promise.all(Array.from({ length: plan.processes }, () => crew.start()))
    await Promise.all([
      producer.enqueueAll(plan.jobs),
      attack(onWorkers, random, reached),
      attack([...ground.faults, reshards].map(counted), random, reached),
      attack([counted(steps)], random, reached),
    ])
    await until('nothing waits any more', async () => (await producer.waiting()) === 0)
    await crew.end()
    const left = { waiting: await producer.waiting(), dead: await dead() }
    const kills = crew.halts.filter(({ kind }) => kind === 'kill').length
    return {
      ...chaosJudgement({ lines: effectLines(folder), halts: crew.halts, leaseMs, startsLimit }),
      seconds: (performance.now() - startedAt) / 1_000,
      halts: { kills, stops: crew.halts.length - kills },
      faults,
      processes: Object.fromEntries(crew.started),
      ...{ deaths: crew.deaths, rejectedEnqueues: producer.rejected, refusedSettles: crew.refused },
      ...{ failedCalls: Object.fromEntries(crew.failedCalls), left },
    }
  } finally {
    crew.kill()
    await mill.close()
  }
}

async function dead(): Promise<number> {
  return (await mill.depths()).reduce((sum, { dead }) => sum + dead, 0)
}

/** What was interrupted is asked for again, as the command line does. */
async function reshard(wanted: number): Promise<void> {
  for (;;) {
    try {
      await mill.queue('ordered').reshard(wanted)
      return
    } catch (error) {
      if ((error as { code?: string }).code === 'config-conflict') throw error
      await delay(lookMs)
    }
  }
}
