/**
 * Proof of results that somebody waits for. On SQLite and on Redis, of 10,000 jobs a store, each waited for, a third is
 * deleted meanwhile, and a queue keeps 20 results: each wait ends with the value of its job, or with a typed error if the
 * job was deleted. Then on every store ten times 5,000 jobs, all waited for at once, in a queue that keeps 1,000 results,
 * with the worker in this process, and on SQLite and Redis in another: each wait ends with its value.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTask, isMillraceError, millrace } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'

/** Nothing is drawn at random. */
export const seed = 0

const jobs = 10_000
/** The number of waits at the same time. */
const perWave = 500
const keptResults = 20
const longestMs = 180_000
/** A wait that takes this long has been forgotten. */
const patience = '60s'

const rounds = 10
const atOnce = 5_000

const expected = new Set(['value', 'result-not-kept'])

export async function prove(report: Report): Promise<Summary> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-results-'))
  const server = await startRedis()
  try {
    report.say(`${jobs} jobs a store, ${perWave} waited for at once; the server: ${await redisVersion(server)}`)
    const sqlite = await outcomesOn(`sqlite:${join(folder, 'jobs.db')}`)
    const redis = await outcomesOn(server.url)
    for (const [store, counts] of Object.entries({ SQLite: sqlite, Redis: redis })) judge(report, store, counts)
    const many: Record<string, number> = {}
    for (const [name, store, isElsewhere] of [
      ['memory', 'memory:', false],
      ['SQLite', `sqlite:${join(folder, 'many.db')}`, false],
      ['SQLite, worker in another process', `sqlite:${join(folder, 'apart.db')}`, true],
      ['Redis', server.url, false],
      ['Redis, worker in another process', server.url, true],
    ] as const) {
      let values = 0
      for (let round = 0; round < rounds; round += 1)
        values += await valuesOn(store, `many-${isElsewhere ? 'apart' : 'here'}-${round}`, isElsewhere)
      many[name] = values
      report.claim(`${name}: ${values} values of ${rounds * atOnce}`, values === rounds * atOnce)
    }
    return { sqlite, redis, many }
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

type Counts = Readonly<Record<string, number>>

function judge(report: Report, store: string, counts: Counts): void {
  const told = Object.entries(counts).map(([outcome, count]) => `${outcome} ${count}`)
  report.say(`${store}: ${told.join(', ')}`)
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0)
  report.claim(`${store}: each of ${jobs} waits has ended (${all})`, all === jobs)
  const others = Object.keys(counts).filter((outcome) => !expected.has(outcome))
  report.claim(`${store}: with its value, or told that it is not kept`, others.length === 0)
  report.claim(
    `${store}: both came about`,
    [...expected].every((outcome) => (counts[outcome] ?? 0) > 0),
  )
}

/** The number of right values, of `atOnce` waits that began before the first of their jobs. */
async function valuesOn(store: string, namespace: string, isElsewhere: boolean): Promise<number> {
  const double = defineTask({ name: 'double', queue: 'double', run: async (n: number) => n * 2 })
  const mill = millrace({ store, namespace, tasks: [double] })
  let other: ChildProcess | undefined
  try {
    const jobs = await mill.enqueueMany(
      double,
      Array.from({ length: atOnce }, (_, i) => i),
    )
    const waiting = mill.results(jobs, { timeout: patience })
    if (isElsewhere) other = workerProcess(store, namespace)
    else await mill.worker({ concurrency: 50 }).start()
    return (await waiting).filter((end, i) => end.status === 'fulfilled' && end.value === i * 2).length
  } finally {
    if (other !== undefined) {
      other.kill()
      await once(other, 'exit')
    }
    await mill.close()
  }
}

function workerProcess(store: string, namespace: string): ChildProcess {
  const program = `
    import { defineTask, millrace } from 'millrace'
    const double = defineTask({ name: 'double', queue: 'double', run: async (n) => n * 2 })
    await millrace({ store: ${JSON.stringify(store)}, namespace: '${namespace}', tasks: [double] }).worker({ concurrency: 50 }).start()`
  return spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' })
}

/** The number of waits by how they ended: `value`, the code of an error, `undefined`, or another outcome. */
async function outcomesOn(store: string): Promise<Counts> {
  const echo = defineTask({ name: 'echo', queue: 'echo', run: async (n: unknown) => ({ n }) })
  const mill = millrace({
    store,
    queues: { echo: { retention: { results: { count: keptResults } } } },
    tasks: [echo],
  })
  const counts: Record<string, number> = {}
  const endsAt = performance.now() + longestMs
  const worker = mill.worker({ concurrency: 50 })
  try {
    await worker.start()
    for (let from = 0; from < jobs && performance.now() < endsAt; from += perWave) {
      const numbers = Array.from({ length: perWave }, (_, i) => from + i)
      const idOf = (n: number) => `job-${n}`
      await mill.enqueueMany(echo, numbers, (_, i) => ({ id: idOf(from + i) }))
      const waits = numbers.map((n) => outcomeOf(mill.job(echo, idOf(n)).result({ timeout: patience }), n))
      const doomed = numbers.filter((n) => n % 3 === 0).map(idOf)
      for (let i = 0; i < doomed.length; i += 20)
        await mill
          .queue('echo')
          .jobs.delete(doomed.slice(i, i + 20))
          .catch(runs)
      for (const outcome of await Promise.all(waits)) counts[outcome] = (counts[outcome] ?? 0) + 1
    }
    return counts
  } finally {
    await worker.stop()
    await mill.close()
  }
}

/** Running jobs are not deleted, and end like the others. */
function runs(error: unknown): void {
  if (!isMillraceError(error) || error.code !== 'job-running') throw error
}

async function outcomeOf(wait: Promise<unknown>, n: number): Promise<string> {
  try {
    const value = await wait
    if (value === undefined) return 'undefined'
    return (value as { readonly n: unknown }).n === n ? 'value' : 'another value'
  } catch (error) {
    return isMillraceError(error) ? error.code : String(error)
  }
}
