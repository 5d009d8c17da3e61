/**
 * The place of the demo: a namespace of the Postgres, Redis or SQS that `MILLRACE_STORE` names, or a SQLite file of its own; and a
 * folder for its ledger and its archive. What the demo puts there goes at its end, and what a demo that was killed has left on a
 * server goes at the begin of the next.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Mill, QueueDepth } from 'millrace'
import { type Service, sqsAt } from './emulator.js'
import { Ledger } from './ledger.js'
import { type Result, resultsOf } from './verdict.js'

/** No other store has a namespace for the demo, and it must not touch the jobs of others. */
const serverUrl = /^(?:rediss?[:+]|postgres(?:ql)?:)/
const sqsUrl = /^sqs:/

interface PlaceParts {
  readonly mill: Mill
  readonly ledger: Ledger
  readonly home: string
  readonly isServer: boolean
  readonly sqs: Service | undefined
  readonly before: readonly QueueDepth[]
}

export class Place {
  readonly mill: Mill
  readonly ledger: Ledger
  readonly #home: string
  readonly #isServer: boolean
  /** Undefined where it is no SQS. */
  readonly #sqs: Service | undefined
  /** The store counts what it has done since it exists. */
  readonly #before: ReadonlyMap<string, QueueDepth>

  private constructor(parts: PlaceParts) {
    this.mill = parts.mill
    this.ledger = parts.ledger
    this.#home = parts.home
    this.#isServer = parts.isServer
    this.#sqs = parts.sqs
    this.#before = new Map(parts.before.map((depth) => [depth.queue, depth]))
  }

  static async open(): Promise<Place> {
    const given = process.env['MILLRACE_STORE'] ?? ''
    const isServer = serverUrl.test(given)
    const home = await mkdtemp(join(tmpdir(), 'millrace-demo-'))
    const sqs = sqsUrl.test(given) ? await sqsAt(given) : undefined
    // The workers, and the configuration when it is loaded, read the environment.
    if (!isServer) process.env['MILLRACE_STORE'] = sqs?.address ?? `sqlite:${join(home, 'jobs.db')}`
    process.env['MILLRACE_DEMO_LEDGER'] = join(home, 'ledger.db')
    const config = sqs === undefined ? './millrace.config.ts' : './sqs.config.ts'
    process.env['MILLRACE_CONFIG'] = fileURLToPath(new URL(config, import.meta.url))
    try {
      const { default: mill } = (await import(config)) as { readonly default: Mill }
      if (sqs !== undefined) await mill.createQueues()
      const before = await mill.depths()
      if (before.some(({ running }) => running > 0)) throw new Error('another demo is at work there')
      if (sqs !== undefined && before.some(({ ready, scheduled }) => ready + scheduled > 0))
        throw new Error('another demo has left messages in the queues millrace-demo-* there: purge them')
      const ledger = new Ledger(process.env['MILLRACE_DEMO_LEDGER'])
      const place = new Place({ mill, ledger, home, isServer, sqs, before })
      if (sqs === undefined) await place.#removeJobs()
      return place
    } catch (error) {
      await rm(home, { recursive: true, force: true })
      await sqs?.stop()
      throw error
    }
  }

  /** Whether it has what only the other stores have: records, throttles, merging, processes that outlive their worker. */
  get isWhole(): boolean {
    return this.#sqs === undefined
  }

  /** In its folder. */
  path(name: string): string {
    return join(this.#home, name)
  }

  /** Of these queues, with only what was done since. */
  async depths(queues: readonly string[]): Promise<QueueDepth[]> {
    const depths = await this.mill.depths(queues)
    // SQS counts nothing that is done: the ledger does.
    const kept = this.isWhole ? undefined : this.ledger.kept()
    return depths.map((depth) => {
      if (kept !== undefined) return { ...depth, processed: kept.get(depth.queue) ?? 0 }
      const { processed, failed } = this.#before.get(depth.queue)!
      return { ...depth, processed: depth.processed - processed, failed: depth.failed - failed }
    })
  }

  /** Every result of a checksum that was kept. */
  async results(): Promise<Result[]> {
    return this.isWhole ? resultsOf(this.mill) : this.ledger.results()
  }

  /** Removes what the demo has made, or keeps it and says where that is. */
  async close(keep: boolean): Promise<string | undefined> {
    try {
      if (!keep && this.#isServer) await this.#removeJobs()
    } finally {
      await this.mill.close()
      this.ledger.close()
      await this.#sqs?.stop()
      if (!keep) await rm(this.#home, { recursive: true, force: true })
    }
    return keep ? `${this.#home}${this.#isServer ? ', and the namespace millrace-demo' : ''}` : undefined
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
