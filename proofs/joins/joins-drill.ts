/**
 * The drill of the joins: producers and workers die by SIGKILL while an operator cancels, deletes, buries and revives
 * members, and joins too. In the end everything is mended and revived, and every join must have come to an end.
 */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Mill, millrace } from 'millrace'
import { Dice } from '#src/store-testing/sequences/dice.js'
import { forkedProgram, killed } from '../forked-program.js'
import { type JoinRest, type JoinsSeen, judged } from './join-judge.js'
import { type JoinPlan, ledgerIn, mendedIn, nameOf, note, planOf, type Row, resultOf } from './join-plan.js'

export interface DrillPlan {
  readonly seed: number
  readonly joins: number
  readonly kills: number
  readonly workers: number
  readonly producers: number
}

export interface DrillSeen extends JoinsSeen {
  readonly kills: number
  readonly acts: number
  /** Joins that the store counts as completed beyond those that there are. */
  readonly twice: number
  readonly seconds: number
}

const queues = ['rows', 'sums', 'tops'] as const
/** No run takes longer, however slow the machine. */
const longestMs = 1_800_000

/** `disturb`: something that happens to the store about every five seconds. */
export async function joinsDrill(plan: DrillPlan, url?: string, disturb?: () => Promise<void>): Promise<DrillSeen> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-joins-'))
  const store = url ?? `sqlite:${join(folder, 'jobs.db')}`
  const env = { MILLRACE_STORE: store, JOIN_FOLDER: folder, JOIN_SEED: String(plan.seed) }
  const startedAt = performance.now()
  const dice = new Dice(plan.seed)
  const mill = millrace({ store, queues: Object.fromEntries(queues.map((name) => [name, {}])), tasks: [] })
  await mill.ready()
  writeFileSync(ledgerIn(folder), '')
  const share = Math.ceil(plan.joins / plan.producers)
  const producers = Array.from({ length: plan.producers }, (_, i) => {
    const args = [String(i * share), String(Math.min(plan.joins, (i + 1) * share))]
    return new Lasting('join-producer.ts', args, env)
  })
  const workers = Array.from({ length: plan.workers }, () => new Lasting('join-worker.ts', [], env))
  const crew = [...producers, ...workers]
  let [kills, acts, disturbances] = [0, 0, 0]
  try {
    while (performance.now() - startedAt < longestMs) {
      const areEnqueued = producers.every(({ isDone }) => isDone)
      if (areEnqueued && kills >= plan.kills) break
      const victims = crew.filter(({ isDone }) => !isDone)
      if (kills < plan.kills && victims.length > 0) {
        await dice.pick(victims).kill()
        kills += 1
      }
      acts += await act(mill, dice, folder)
      if (disturb !== undefined && (performance.now() - startedAt) / 5_000 > disturbances) {
        disturbances += 1
        await disturb()
      }
      await delay(dice.whole(20, 250))
    }
    writeFileSync(mendedIn(folder), '')
    await settled(mill, startedAt)
    const rests = await restsOf(mill, plan)
    const seen = judged(plan.seed, plan.joins, readFileSync(ledgerIn(folder), 'utf8'), rests)
    const twice = await completedTwice(mill, plan, rests)
    return { ...seen, kills, acts, twice, seconds: Math.round((performance.now() - startedAt) / 1_000) }
  } finally {
    await Promise.all(crew.map((one) => one.end()))
    await mill.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** An operator does something to a job. It is in the ledger before it is done. Returns how many things it did. */
async function act(mill: Mill, dice: Dice, folder: string): Promise<number> {
  const rows = mill.queue('rows')
  try {
    if (dice.chance(0.15)) {
      const { jobs } = await rows.morgue.list({ limit: 20 })
      const some = jobs.filter(() => dice.chance(0.5)).map(({ id }) => id)
      return some.length === 0 ? 0 : await rows.morgue.revive(some)
    }
    if (dice.chance(0.1)) {
      const sums = mill.queue('sums')
      const { jobs } = await sums.morgue.list({ limit: 20 })
      const some = jobs.filter(() => dice.chance(0.3)).map(({ id }) => id)
      return some.length === 0 ? 0 : await sums.morgue.revive(some)
    }
    if (!dice.chance(0.6)) return 0
    const { jobs } = await rows.jobs.list({ state: 'ready', limit: 100 })
    if (jobs.length === 0) return 0
    const { id, input } = dice.pick(jobs)
    note(folder, 'cancels', resultOf(input as Row))
    return await rows.jobs[dice.pick(['cancel', 'delete', 'bury'] as const)]([id])
  } catch {
    // The server is away, or the job has begun.
    return 0
  }
}

/** Revives what is dead until everything has ended, or nothing changes any more. */
async function settled(mill: Mill, startedAt: number): Promise<void> {
  for (let quiet = 0; quiet < 20 && performance.now() - startedAt < longestMs; ) {
    await delay(500)
    try {
      let changed = 0
      for (const name of queues) changed += await mill.queue(name).morgue.revive('all')
      const depths = await Promise.all(queues.map((name) => mill.queue(name).depth()))
      const left = depths.reduce((sum, { ready, running, scheduled }) => sum + ready + running + scheduled, 0)
      quiet = changed + left === 0 ? quiet + 1 : 0
    } catch {
      quiet = 0
    }
  }
}

async function restsOf(mill: Mill, { seed, joins }: DrillPlan): Promise<Map<string, JoinRest>> {
  const rests = new Map<string, JoinRest>()
  for (let number = 0; number < joins; number += 1) {
    const plan = planOf(seed, number)
    const name = nameOf(plan)
    const record = await mill.queue(plan.tree === undefined ? 'sums' : 'tops').jobs.get(name)
    rests.set(name, { state: record?.state ?? 'gone', reason: record?.reason })
  }
  return rests
}

/** The store counts each completion of a job. A tree has two joins under the one that is in the plan. */
async function completedTwice(mill: Mill, { seed, joins }: DrillPlan, rests: ReadonlyMap<string, JoinRest>) {
  const plans = Array.from({ length: joins }, (_, number) => planOf(seed, number))
  const trees = plans.filter(({ tree }) => tree !== undefined)
  const areCompleted = (some: readonly JoinPlan[]) =>
    some.filter((plan) => rests.get(nameOf(plan))?.state === 'completed').length
  const [tops, sums] = await Promise.all(
    ['tops', 'sums'].map(async (name) => (await mill.queue(name).depth()).processed),
  )
  const alone = plans.filter(({ tree }) => tree === undefined)
  return Math.max(0, tops! - areCompleted(trees)) + Math.max(0, sums! - areCompleted(alone) - 2 * trees.length)
}

/** A process that is started again whenever it dies, until it ends by itself. */
class Lasting {
  isDone = false
  readonly #program: string
  readonly #args: readonly string[]
  readonly #env: Readonly<Record<string, string>>
  #process: ChildProcess

  constructor(program: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    this.#program = program
    this.#args = args
    this.#env = env
    this.#process = this.#start()
  }

  #start(): ChildProcess {
    const started = forkedProgram(join(import.meta.dirname, this.#program), this.#args, { env: this.#env })
    started.once('exit', (code) => {
      if (this.isDone) return
      if (code === 0) this.isDone = true
      else this.#process = this.#start()
    })
    return started
  }

  kill(): Promise<void> {
    return killed(this.#process)
  }

  async end(): Promise<void> {
    this.isDone = true
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const ended = once(this.#process, 'exit')
    this.#process.kill('SIGTERM')
    await ended
  }
}
