/**
 * The result watch of a Redis store: a caller that waits for a job's end listens to its shard's channel, then looks.
 */

import { setMaxListeners } from 'node:events'
import type { JobKey } from '../../contract/job-records.js'
import { longestExpectMs } from '../../rules/bounds.js'
import type { RedisClient } from '../client/redis-client.js'
import { listIn, textIn } from '../client/redis-reply.js'
import { keyIn } from '../layout/redis-keys.js'
import { type RedisShard, shardsHolding } from '../layout/redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { endedScripts } from './ended-scripts.js'
import { expectScripts } from './expect-script.js'

/** For each shard, the jobs that it may have something of. */
type Places = ReadonlyMap<RedisShard, readonly JobKey[]>

/** The most jobs of one call: it stops the server for less than a few ms. */
const mostExpected = 1_000

/** The shortest time between two looks, however many jobs end. */
const pauseMs = 20

export class RedisResultWatch {
  readonly #client: RedisClient
  readonly #queues: RedisQueues
  readonly #closing = new AbortController()

  constructor(client: RedisClient, queues: RedisQueues) {
    this.#client = client
    this.#queues = queues
    // Each running watch adds a listener, and their number is unlimited.
    setMaxListeners(0, this.#closing.signal)
  }

  async watch(jobs: readonly JobKey[], forMs: number, signal: AbortSignal): Promise<JobKey[]> {
    return this.#queues.following(() => this.#watch(jobs, forMs, signal))
  }

  async #watch(jobs: readonly JobKey[], forMs: number, signal: AbortSignal): Promise<JobKey[]> {
    const places = await this.#placesOf(jobs)
    const deadline = performance.now() + forMs
    const first = await this.#ended(places)
    if (first.length > 0 || forMs <= 0 || signal.aborted || places.size === 0) return first
    return this.#heard(places, deadline, signal)
  }

  /** As `expect` of the contract. */
  async expect(jobs: readonly JobKey[], by: string, forMs: number): Promise<void> {
    const ms = String(Math.ceil(Math.min(forMs, longestExpectMs)))
    await this.#queues.following(async () => {
      const calls: Promise<unknown>[] = []
      for (const [shard, some] of await this.#placesOf(jobs)) {
        if (shard.kind === 'ordered') continue
        for (let i = 0; i < some.length; i += mostExpected) {
          const ids = some.slice(i, i + mostExpected).map(({ id }) => id)
          calls.push(this.#queues.run(shard, expectScripts, [by, ms, ...ids]))
        }
      }
      await Promise.all(calls)
    })
  }

  async #placesOf(jobs: readonly JobKey[]): Promise<Places> {
    const queues = await this.#queues.findNow(jobs.map(({ queue }) => queue))
    const places = new Map<RedisShard, JobKey[]>()
    for (const [i, job] of jobs.entries())
      for (const shard of shardsHolding(queues[i]!, job.id)) places.set(shard, [...(places.get(shard) ?? []), job])
    return places
  }

  close(): void {
    this.#closing.abort()
  }

  async #heard(places: Places, deadline: number, signal: AbortSignal): Promise<JobKey[]> {
    let news = false
    let wake = () => {}
    const tell = () => {
      news = true
      wake()
    }
    const over = AbortSignal.any([signal, this.#closing.signal])
    over.addEventListener('abort', tell)
    const timer = setTimeout(tell, Math.min(Math.max(0, deadline - performance.now()), 0x7fffffff))
    const listening = [...places.keys()].map(({ keys }) => this.#client.listen(keyIn(keys, 'ends'), tell))
    try {
      await Promise.all(listening)
      for (;;) {
        // Looks before the first sleep too: a job may have ended before anybody listened.
        const ended = await this.#ended(places)
        if (ended.length > 0) return ended
        if (over.aborted || performance.now() >= deadline) return []
        if (!news) await new Promise<void>((resolve) => (wake = resolve))
        news = false
        if (!over.aborted) await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
    } finally {
      clearTimeout(timer)
      over.removeEventListener('abort', tell)
      // If listening to one shard failed, still stop listening to the others.
      for (const one of listening) one.then((stop) => stop()).catch(() => {})
    }
  }

  /** The jobs that are in none of their places any more. */
  async #ended(places: Places): Promise<JobKey[]> {
    const there = new Set<JobKey>()
    await Promise.all(
      [...places].map(async ([shard, jobs]) => {
        const reply = await this.#queues.run(shard, endedScripts, [...new Set(jobs.map(({ id }) => id))])
        const ended = new Set(listIn(reply).map(textIn))
        for (const job of jobs) if (!ended.has(job.id)) there.add(job)
      }),
    )
    const all = new Set([...places.values()].flat())
    return [...all].filter((job) => !there.has(job))
  }
}
