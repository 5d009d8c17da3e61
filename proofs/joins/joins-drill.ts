/**
 * The drill of the joins: producers and workers die by SIGKILL while an operator cancels, deletes, buries and revives
 * members, and joins too. In the end everything is mended and revived, and every join must have come to an end.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Mill } from 'millrace'
import { Dice } from '#src/store-testing/sequences/dice.js'
import { LastingProcess } from '../lasting-process.js'
import { type JoinRest, type JoinsSeen, judged } from './join-judge.js'
import { JoinOperator } from './join-operator.js'
import { joinsOf, ledgerIn, mendedIn, planOf } from './join-plan.js'
import { connect } from './join-tasks.js'

export interface DrillPlan {
  readonly seed: number
  readonly joins: number
  readonly kills: number
  readonly workers: number
  readonly producers: number
  /** Whether each report comes twice, and late where reports travel. */
  readonly isUnkind: boolean
}

export interface DrillSeen extends JoinsSeen {
  readonly kills: number
  readonly acts: Readonly<Record<string, number>>
  /** Joins that the store counts as completed beyond those that there are. */
  readonly twice: number
  readonly seconds: number
}

const queues = ['rows', 'loose', 'sums', 'tops', 'orders'] as const
/** The disturbed part of a run takes no longer, however slow the machine, and what follows it neither. */
const longestMs = 1_800_000
const disturbEveryMs = 3_000
/** Nothing has changed in so many looks, half a second apart: longer than a sweep takes to come. */
const quietLooks = 30

/** `disturb`: something that happens to the store about every three seconds. */
export async function joinsDrill(
  plan: DrillPlan,
  url?: string,
  disturb?: (dice: Dice) => Promise<void>,
): Promise<DrillSeen> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-joins-'))
  const store = url ?? `sqlite:${join(folder, 'jobs.db')}`
  const own = { MILLRACE_STORE: store, JOIN_FOLDER: folder, JOIN_SEED: String(plan.seed) }
  const env = { ...own, ...(plan.isUnkind ? { JOIN_STORE: store } : {}) }
  const startedAt = performance.now()
  const dice = new Dice(plan.seed)
  const mill = connect(store, false)
  await mill.createQueues()
  writeFileSync(ledgerIn(folder), '')
  const share = Math.ceil(plan.joins / plan.producers)
  const producers = Array.from({ length: plan.producers }, (_, i) => {
    const args = [String(i * share), String(Math.min(plan.joins, (i + 1) * share))]
    return new LastingProcess(join(import.meta.dirname, 'join-producer.ts'), args, env)
  })
  const workers = Array.from(
    { length: plan.workers },
    () => new LastingProcess(join(import.meta.dirname, 'join-worker.ts'), [], env),
  )
  const crew = [...producers, ...workers]
  const operator = new JoinOperator(mill, dice, folder)
  let [kills, disturbances] = [0, 0]
  try {
    while (performance.now() - startedAt < longestMs) {
      const areEnqueued = producers.every(({ isDone }) => isDone)
      if (areEnqueued && kills >= plan.kills) break
      // Those that only begin have nothing in hand.
      const victims = crew.filter(({ isDone, isReady }) => !isDone && isReady)
      if (kills < plan.kills && victims.length > 0 && dice.chance(0.3)) {
        await dice.pick(victims).kill()
        kills += 1
      }
      await operator.act()
      if ((performance.now() - startedAt) / disturbEveryMs > disturbances) {
        disturbances += 1
        await operator.reshard()
        await disturb?.(dice)
      }
      await delay(dice.whole(20, 250))
    }
    writeFileSync(mendedIn(folder), '')
    await settled(mill, operator)
    const rests = await restsOf(mill, plan)
    const seen = judged(plan.seed, plan.joins, readFileSync(ledgerIn(folder), 'utf8'), rests)
    const twice = await completedTwice(mill, plan, rests)
    const seconds = Math.round((performance.now() - startedAt) / 1_000)
    return { ...seen, kills, acts: operator.acts, twice, seconds }
  } finally {
    await Promise.all(crew.map((one) => one.end()))
    await mill.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Revives what is dead until everything has ended, or nothing changes any more. */
async function settled(mill: Mill, operator: JoinOperator): Promise<void> {
  const startedAt = performance.now()
  for (let quiet = 0; quiet < quietLooks && performance.now() - startedAt < longestMs; ) {
    await delay(500)
    try {
      await operator.endReshard()
      let changed = 0
      for (const name of queues) changed += await mill.queue(name).morgue.revive('all')
      const depths = await Promise.all(queues.map((name) => mill.queue(name).depth()))
      const left = depths.reduce((sum, { ready, running, scheduled }) => sum + ready + running + scheduled, 0)
      const waiting = depths.reduce((sum, depth) => sum + (depth.waiting ?? 0), 0)
      if (changed + left + waiting === 0) return
      quiet = changed + left === 0 ? quiet + 1 : 0
    } catch {
      quiet = 0
    }
  }
}

async function restsOf(mill: Mill, { seed, joins }: DrillPlan): Promise<Map<string, JoinRest>> {
  const rests = new Map<string, JoinRest>()
  const dead = await deadIn(mill, 'tops')
  for (let number = 0; number < joins; number += 1) {
    const { name, queue, parts } = joinsOf(planOf(seed, number)).at(-1)!
    const record = await mill.queue(queue).jobs.get(name)
    const waitsForDead = record?.state === 'waiting' && parts.some((part) => dead.has(part))
    rests.set(name, { state: waitsForDead ? 'dead' : (record?.state ?? 'gone'), reason: record?.reason })
  }
  return rests
}

/**
 * The joins in the morgue of this queue, by their names in the plan. A join that was revived waits for them, however little
 * they can come: it is as good as dead.
 */
async function deadIn(mill: Mill, queue: string): Promise<Set<string>> {
  const names = new Set<string>()
  for (let cursor: string | undefined; ; ) {
    const page = await mill.queue(queue).morgue.list({ limit: 200, ...(cursor && { cursor }) })
    for (const { input } of page.jobs) names.add((input as { name: string }).name)
    cursor = page.cursor
    if (cursor === undefined) return names
  }
}

/** The store counts each completion of a job. Of the joins in a tree at most all have completed. */
async function completedTwice(mill: Mill, { seed, joins }: DrillPlan, rests: ReadonlyMap<string, JoinRest>) {
  const most = { sums: 0, tops: 0 }
  for (let number = 0; number < joins; number += 1) {
    const all = joinsOf(planOf(seed, number))
    for (const { name, queue } of all)
      if (name !== all.at(-1)!.name || rests.get(name)?.state === 'completed') most[queue] += 1
  }
  const [sums, tops] = await Promise.all(
    (['sums', 'tops'] as const).map(async (name) => (await mill.queue(name).depth()).processed),
  )
  return Math.max(0, sums! - most.sums) + Math.max(0, tops! - most.tops)
}
