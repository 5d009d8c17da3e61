/**
 * Proof of large joins, on SQLite and on Redis. A join of 100,000 members from an async iterable: the memory of its
 * producer and that of its handler do not grow with them, it starts at most 50 ms after its last member has ended, with all
 * results in order, and Redis keeps at most 16 kB for it besides jobs and results. And 100 joins of 1,000 members: the jobs
 * of a busy queue beside them start as soon as beside as many jobs without joins.
 */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, type Mill, millrace } from 'millrace'
import { type RedisServer, startRedis } from 'millrace/store-testing'
import { forkedProgram, killed, machineMs } from '../forked-program.js'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'
import type { Added, Order, Seen } from './join-sizes-process.js'

/** Nothing is drawn at random. */
export const seed = 0

const scale = Number(process.env['JOINS_SCALE'] ?? 1)
const members = 100_000 * scale
const joins = Math.round(100 * scale)
/** Of a busy queue. */
const perSecond = 200
/** How often each kind of load is beside it, in turns. Of fewer rounds the median is noise. */
const rounds = 9
const longestMs = 600_000

const mostGrowthMb = 4
const mostWakeMs = 50
const mostBookkeeping = 16_384
const mostSlowdown = 1.2

export async function prove(report: Report): Promise<Summary> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-join-sizes-'))
  const server = await startRedis({ config: ['appendonly yes', 'appendfsync everysec'] })
  try {
    report.say(`the server: ${await redisVersion(server)}`)
    const summary: Record<string, unknown> = {}
    for (const [store, url] of [
      ['SQLite', `sqlite:${join(folder, 'jobs.db')}`],
      ['Redis', server.url],
    ] as const) {
      const large = await largeOn(report, store, url, store === 'Redis' ? server : undefined)
      summary[store] = { ...large, ...(await busyOn(report, store, url)) }
    }
    return summary
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** One join of very many members. */
async function largeOn(report: Report, store: string, url: string, server: RedisServer | undefined): Promise<Summary> {
  const watch = millrace({ store: url, queues: { rows: {}, sums: {} }, tasks: [] })
  const [producer, rows, sums] = await Promise.all([1, 2, 3].map(() => Role.start(url)))
  try {
    const added = await producer!.ask<Added>({ order: 'join', members })
    await producer!.end()
    const growth = added.heapMb.at(-1)! - added.heapMb[0]!
    report.say(
      `— ${store}: ${members} members added in ${added.seconds.toFixed(1)} s; heap of the producer after each tenth: ${megabytes(added.heapMb)}`,
    )
    report.claim(
      `${store}: the producer's heap grows by at most ${mostGrowthMb} MB: ${growth.toFixed(1)}`,
      growth <= mostGrowthMb,
    )
    const bytes = [await bookkeeping(server)]
    await sums!.ask({ order: 'work', queue: 'sums', concurrency: 1 })
    const startedAt = machineMs()
    await rows!.ask({ order: 'work', queue: 'rows', concurrency: 100 })
    let isHalf = false
    const seen = await until(async () => {
      if (!isHalf && (await watch.queue('rows').depth()).processed >= members / 2) {
        isHalf = true
        bytes.push(await bookkeeping(server))
      }
      const { joins } = await sums!.ask<Seen>({ order: 'seen' })
      return joins[0]
    })
    const wakeMs = seen.startedAt - (await rows!.ask<number>({ order: 'last' }))
    const seconds = (seen.startedAt - startedAt) / 1_000
    report.say(
      `— ${store}: all ended in ${seconds.toFixed(1)} s; heap of the handler after each tenth of the results: ${megabytes(seen.heapMb)}`,
    )
    const isWhole = seen.members === members && seen.total === (members * (members - 1)) / 2
    report.claim(`${store}: the handler gets each of ${members} results once: ${seen.members}`, isWhole)
    const readGrowth = seen.heapMb.at(-1)! - seen.heapMb[0]!
    report.claim(
      `${store}: the handler's heap grows by at most ${mostGrowthMb} MB while it reads: ${readGrowth.toFixed(1)}`,
      readGrowth <= mostGrowthMb,
    )
    report.claim(
      `${store}: the join starts at most ${mostWakeMs} ms after its last member has ended: ${wakeMs.toFixed(1)}`,
      wakeMs <= mostWakeMs,
    )
    const most = Math.max(...bytes)
    if (server !== undefined)
      report.claim(
        `${store}: besides jobs and results it keeps at most ${mostBookkeeping} bytes for the join, with none and with half of its members ended: ${bytes.join(', ')}`,
        most <= mostBookkeeping,
      )
    return { addSeconds: added.seconds, growth, readGrowth, seconds, wakeMs, ...(server && { bookkeeping: bytes }) }
  } finally {
    await Promise.all([producer, rows, sums].map((role) => role!.end()))
    await watch.close()
  }
}

/** The bytes of the keys of joins, without those of results. */
async function bookkeeping(server: RedisServer | undefined): Promise<number> {
  if (server === undefined) return 0
  let bytes = 0
  for (const queue of ['rows', 'sums'])
    for (const key of ['joins', 'join-tasks', 'joining'])
      bytes += Number(await server.ask('MEMORY', 'USAGE', `{millrace:${queue}}:${key}`, 'SAMPLES', '0'))
  return bytes
}

/** A busy queue, beside many joins and beside as many jobs without joins, in turns. */
async function busyOn(report: Report, store: string, url: string): Promise<Summary> {
  const mill = millrace({ store: url, queues: { rows: {}, sums: {}, busy: {} }, tasks: [busyTask] })
  const [producer, rows, sums, worker] = await Promise.all([1, 2, 3, 4].map(() => Role.start(url)))
  const p99s: Record<'joins' | 'jobs', number[]> = { joins: [], jobs: [] }
  try {
    await worker!.ask({ order: 'work', queue: 'busy', concurrency: 10 })
    await sums!.ask({ order: 'work', queue: 'sums', concurrency: 10 })
    await rows!.ask({ order: 'work', queue: 'rows', concurrency: 50 })
    await paced(mill, delay(2_000))
    const alone = p99Of((await worker!.ask<Seen>({ order: 'seen' })).latenciesMs)
    for (let round = 0; round < rounds; round += 1)
      for (const kind of round % 2 === 0 ? (['joins', 'jobs'] as const) : (['jobs', 'joins'] as const)) {
        const before = await mill.queue('rows').depth()
        const over = async () => {
          await producer!.ask({ order: 'fill', joins, areJoins: kind === 'joins', pauseMs: 5 })
          await until(async () => {
            const { processed } = await mill.queue('rows').depth()
            return processed - before.processed >= joins * 1_000 ? true : undefined
          })
        }
        await paced(mill, over())
        p99s[kind].push(p99Of((await worker!.ask<Seen>({ order: 'seen' })).latenciesMs))
      }
    const ratios = p99s.joins.map((one, round) => one / p99s.jobs[round]!).sort((a, b) => a - b)
    const ratio = ratios[ratios.length >> 1]!
    report.say(
      `— ${store}: p99 from enqueue to start at ${perSecond} jobs a second: alone ${alone.toFixed(1)} ms; beside ${joins} joins of 1,000 ${p99s.joins.map((one) => one.toFixed(1)).join(', ')} ms; beside as many jobs without joins ${p99s.jobs.map((one) => one.toFixed(1)).join(', ')} ms`,
    )
    report.claim(
      `${store}: beside joins the p99 is at most ${mostSlowdown} × that beside jobs without joins, in the median round: ${ratio.toFixed(2)}`,
      ratio <= mostSlowdown,
    )
    return { p99Alone: alone, p99Joins: p99s.joins, p99Jobs: p99s.jobs, slowdown: ratio }
  } finally {
    await Promise.all([producer, rows, sums, worker].map((role) => role!.end()))
    await mill.close()
  }
}

const busyTask = defineTask({ name: 'busy', queue: 'busy' })

/** Enqueues jobs at their time, even if earlier ones have not been accepted, until `over` resolves. */
async function paced(mill: Mill, over: Promise<unknown>): Promise<void> {
  let isOver = false
  const ended = over.finally(() => {
    isOver = true
  })
  const accepted: Promise<unknown>[] = []
  const startedAt = performance.now()
  for (let i = 0; !isOver; i += 1) {
    await delay(Math.max(0, startedAt + (i * 1_000) / perSecond - performance.now()))
    accepted.push(mill.enqueue(busyTask, { at: machineMs() }))
  }
  await ended
  await Promise.all(accepted)
  await until(async () => {
    const { ready, running } = await mill.queue('busy').depth()
    return ready + running === 0 ? true : undefined
  })
}

function p99Of(latencies: readonly number[]): number {
  return latencies.toSorted((a, b) => a - b)[Math.floor(latencies.length * 0.99)]!
}

function megabytes(values: readonly number[]): string {
  return `${values.map((value) => value.toFixed(1)).join(', ')} MB`
}

async function until<T>(found: () => Promise<T | undefined>): Promise<T> {
  const startedAt = performance.now()
  while (performance.now() - startedAt < longestMs) {
    const value = await found()
    if (value !== undefined) return value
    await delay(50)
  }
  throw new Error(`it did not happen within ${longestMs / 1_000} s`)
}

/** A process of the proof. It answers one order after the other. */
class Role {
  readonly #child: ChildProcess

  private constructor(child: ChildProcess) {
    this.#child = child
  }

  static async start(store: string): Promise<Role> {
    const file = join(import.meta.dirname, 'join-sizes-process.ts')
    const child = forkedProgram(file, [], { env: { MILLRACE_STORE: store }, flags: ['--expose-gc'] })
    await once(child, 'message')
    return new Role(child)
  }

  async ask<Answer>(order: Order): Promise<Answer> {
    this.#child.send(order)
    const [{ answer }] = (await once(this.#child, 'message')) as [{ answer: Answer }]
    return answer
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    if (!this.#child.connected) return killed(this.#child)
    const ended = once(this.#child, 'exit')
    this.#child.send({ order: 'end' } satisfies Order)
    await ended
  }
}
