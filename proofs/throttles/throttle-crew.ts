/** The crew of runs under a throttle: eight processes on one store, and a producer that also moves the clock. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { defaultStartAt } from '#src/store-testing/harness/store-harness.js'
import type { Store } from '#src/stores/contract/store.js'
import { forkedProgram } from '../forked-program.js'
import type { ClaimOrder } from './throttle-claimant.js'
import type { RunPlan } from './throttle-plan.js'
import type { Contestant } from './throttle-run.js'
import { type ClockedStore, type StoreWords, storeOf } from './throttle-store.js'

type SharedClock = (now: number) => void | Promise<void>

export class ThrottleCrew implements Contestant {
  readonly #claimants: readonly ChildProcess[]
  readonly #clocked: ClockedStore
  readonly #moveClock: (now: number) => Promise<void>
  #now = defaultStartAt
  #orders = 0
  #jobs = 0
  #queue = ''

  private constructor(claimants: readonly ChildProcess[], words: StoreWords, moveShared: SharedClock | undefined) {
    this.#claimants = claimants
    this.#clocked = storeOf(words)
    this.#moveClock = async (now) => {
      await moveShared?.(now)
      this.#clocked.setNow(now)
    }
  }

  /** `skewsMs`: the error of the `Date` of each process. `moveShared`: sets the clock that the store itself reads. */
  static async start(words: StoreWords, skewsMs: readonly number[], moveShared?: SharedClock): Promise<ThrottleCrew> {
    const program = join(import.meta.dirname, 'throttle-claimant.ts')
    const claimants = skewsMs.map((skewMs) => forkedProgram(program, [JSON.stringify(words), String(skewMs)]))
    const crew = new ThrottleCrew(claimants, words, moveShared)
    await crew.#moveClock(crew.#now)
    await Promise.all(claimants.map((one) => once(one, 'message')))
    return crew
  }

  get #store(): Store {
    return this.#clocked.store
  }

  async begin({ throttle }: RunPlan): Promise<void> {
    this.#queue = throttle.scope
    await this.#store.open([{ name: this.#queue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, throttle }])
  }

  async advance(afterMs: number, arrivals: readonly string[]): Promise<void> {
    this.#now += afterMs
    await this.#moveClock(this.#now)
    if (arrivals.length === 0) return
    const jobs = arrivals.map((group) => {
      const id = String(++this.#jobs)
      return { id, task: 'it', payload: '1', priority: 0, rememberMs: 0, ...(group === '' ? {} : { group }) }
    })
    await this.#store.enqueue([{ callId: `call-${this.#jobs}`, queue: this.#queue, jobs }])
  }

  async claim(process: number, limit: number): Promise<readonly string[]> {
    const claimant = this.#claimants[process]!
    const order: ClaimOrder = { n: ++this.#orders, queue: this.#queue, limit, now: this.#now }
    const answered = once(claimant, 'message') as Promise<[{ n: number; groups: string[] }]>
    claimant.send(order)
    const [{ n, groups }] = await answered
    if (n !== order.n) throw new Error(`asked for order ${order.n}, answered was ${n}`)
    return groups
  }

  async end(): Promise<void> {
    await this.#store.close()
    await Promise.all(
      this.#claimants.map(async (one) => {
        const gone = once(one, 'exit')
        one.disconnect()
        await gone
      }),
    )
  }
}
