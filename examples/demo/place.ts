/**
 * The place of the demo: a namespace of the Redis that `MILLRACE_STORE` names, or a SQLite file of its own; and a folder for
 * its ledger and its archive. What the demo puts there goes at its end, and what a demo that was killed has left there goes at the begin of
 * the next.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Depth, Mill } from 'millrace'
import { Ledger } from './ledger.js'

/** No other store has a namespace for the demo, and it must not touch the jobs of others. */
const redisUrl = /^rediss?[:+]/

export class Place {
  readonly mill: Mill
  readonly ledger: Ledger
  readonly #home: string
  readonly #isRedis: boolean
  /** The store counts what it has done since it exists. */
  readonly #before: ReadonlyMap<string, Depth>

  private constructor(mill: Mill, ledger: Ledger, home: string, isRedis: boolean, before: readonly Depth[]) {
    this.mill = mill
    this.ledger = ledger
    this.#home = home
    this.#isRedis = isRedis
    this.#before = new Map(before.map((depth) => [depth.queue, depth]))
  }

  static async open(): Promise<Place> {
    const isRedis = redisUrl.test(process.env['MILLRACE_STORE'] ?? '')
    const home = await mkdtemp(join(tmpdir(), 'millrace-demo-'))
    // The workers, and the configuration when it is loaded, read the environment.
    if (!isRedis) process.env['MILLRACE_STORE'] = `sqlite:${join(home, 'jobs.db')}`
    process.env['MILLRACE_DEMO_LEDGER'] = join(home, 'ledger.db')
    try {
      const { default: mill } = await import('./millrace.config.js')
      const before = await mill.depths()
      if (before.some(({ running }) => running > 0)) throw new Error('another demo is at work there')
      const ledger = new Ledger(process.env['MILLRACE_DEMO_LEDGER'])
      const place = new Place(mill, ledger, home, isRedis, before)
      await place.#removeJobs()
      return place
    } catch (error) {
      await rm(home, { recursive: true, force: true })
      throw error
    }
  }

  /** In its folder. */
  path(name: string): string {
    return join(this.#home, name)
  }

  /** Of these queues, with only what was done since. */
  async depths(queues: readonly string[]): Promise<Depth[]> {
    const depths = (await this.mill.depths()).filter(({ queue }) => queues.includes(queue))
    return depths.map((depth) => {
      const { processed, failed } = this.#before.get(depth.queue)!
      return { ...depth, processed: depth.processed - processed, failed: depth.failed - failed }
    })
  }

  /** Removes what the demo has made, or keeps it and says where that is. */
  async close(keep: boolean): Promise<string | undefined> {
    try {
      if (!keep && this.#isRedis) await this.#removeJobs()
    } finally {
      await this.mill.close()
      this.ledger.close()
      if (!keep) await rm(this.#home, { recursive: true, force: true })
    }
    return keep ? `${this.#home}${this.#isRedis ? ', and the namespace millrace-demo' : ''}` : undefined
  }

  async #removeJobs(): Promise<void> {
    for (const name of this.#before.keys()) {
      const queue = this.mill.queue(name)
      await queue.clear()
      // Kept results go by their ids alone.
      for (;;) {
        const { jobs } = await queue.jobs.list({ state: 'completed', limit: 200 })
        if (jobs.length === 0) break
        await queue.jobs.delete(jobs.map(({ id }) => id))
      }
    }
  }
}
