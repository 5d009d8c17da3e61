/** The simulated world: one store, a producer, workers and a clock, each of which moves only by a step that is asked for. */

import type { Claim, SettleItem, Store } from 'millrace/store'
import { EffectLedger, Violation } from './effect-ledger.js'
import { leaseMs, queueName, type Scenario, stepMs, workerCount } from './scenarios.js'

/** Where the store and its clock come from: this build, or a copy with a mistake in it. */
export interface WorldParts {
  readonly MemoryStore: new (clock: WorldClock) => Store
  readonly ManualClock: new (startAt: number) => WorldClock
}

interface WorldClock {
  now(): number
  mono(): number
  advance(ms: number): void
}

interface SimulatedWorker {
  holds: Claim[]
  /** What it sent last, and may send again because no answer came. */
  sent: SettleItem | undefined
}

const startAt = 1_700_000_000_000
/** More steps than any scenario needs to come to rest. */
const mostRounds = 60

export class SimulatedWorld {
  readonly ledger: EffectLedger
  readonly #scenario: Scenario
  readonly #store: Store
  readonly #clock: WorldClock
  readonly #workers: SimulatedWorker[]
  #sent = 0
  #isRepeated = false
  #lastAnswer: string | undefined
  steps = 0

  private constructor(scenario: Scenario, parts: WorldParts) {
    this.#scenario = scenario
    this.ledger = new EffectLedger(scenario)
    this.#clock = new parts.ManualClock(startAt)
    this.#store = new parts.MemoryStore(this.#clock)
    this.#workers = Array.from({ length: workerCount }, () => ({ holds: [], sent: undefined }))
  }

  static async of(scenario: Scenario, parts: WorldParts): Promise<SimulatedWorld> {
    const world = new SimulatedWorld(scenario, parts)
    await world.#store.open([scenario.settings])
    for (const step of scenario.prologue) await world.take(step)
    return world
  }

  /** The steps that can be taken now, always in the same order. */
  get choices(): string[] {
    const choices = ['time passes']
    if (this.#sent < this.#scenario.jobs.length) choices.push('enqueue')
    if (this.#sent > 0 && !this.#isRepeated) choices.push('enqueue again')
    for (const [i, { holds, sent }] of this.#workers.entries()) {
      if (holds.length === 0) choices.push(`${i} claims`, `${i} claims alone`)
      else choices.push(`${i} completes`, `${i} fails`, `${i} releases`, `${i} beats`, `${i} crashes`)
      if (sent !== undefined) choices.push(`${i} settles again`)
    }
    return choices
  }

  /** Takes a step. Throws `Violation` when the answer breaks a promise. */
  async take(step: string): Promise<void> {
    this.steps += 1
    if (step === 'time passes') this.#clock.advance(stepMs)
    else if (step === 'enqueue') await this.#enqueue(this.#sent++)
    else if (step === 'enqueue again') await this.#enqueue(this.#sent - 1, true)
    else await this.#work(this.#workers[Number(step[0])]!, step.slice(2))
  }

  /** Everybody does what is right from here on: what was accepted ends, or a promise is broken. */
  async comeToRest(): Promise<void> {
    while (this.#sent < this.#scenario.jobs.length) await this.take('enqueue')
    for (let round = 0; round < mostRounds && this.ledger.open.length > 0; round += 1) {
      for (const worker of this.#workers.keys()) {
        while (this.#workers[worker]!.holds.length > 0) await this.take(`${worker} completes`)
        await this.take(round % 2 === 0 ? `${worker} claims` : `${worker} claims alone`)
      }
      if (this.#workers.every(({ holds }) => holds.length === 0)) await this.take('time passes')
    }
    if (this.ledger.open.length > 0) throw new Violation(`${this.ledger.open.join()} never ends`)
    const { depths } = await this.#store.depth([queueName])
    const { ready, scheduled, running } = depths[0]!
    if (ready + scheduled + running > 0)
      throw new Violation(`${ready + scheduled + running} jobs are left that nobody enqueued`)
  }

  async #enqueue(place: number, isResent = false): Promise<void> {
    const job = { ...this.#scenario.jobs[place]!, task: 't', priority: 0, rememberMs: 0 }
    const [[answer] = []] = await this.#store.enqueue([
      { callId: `call-${place}`, isResent, queue: queueName, jobs: [job] },
    ])
    if (isResent && answer !== this.#lastAnswer)
      throw new Violation(`a call sent again was answered '${answer}', at first '${this.#lastAnswer}'`)
    if (!isResent) this.ledger.enqueued(this.#scenario.jobs[place]!, answer!, this.#clock.now())
    this.#lastAnswer = answer
    this.#isRepeated = isResent
  }

  async #work(worker: SimulatedWorker, what: string): Promise<void> {
    const [claim] = worker.holds
    switch (what) {
      case 'claims':
      case 'claims alone':
        return this.#claim(worker, what === 'claims alone')
      case 'crashes':
        worker.holds = []
        worker.sent = undefined
        return
      case 'beats':
        return this.#beat(claim!)
      case 'settles again':
        return this.#settle(worker, worker.sent!)
      case 'completes':
        return this.#settle(worker, { ...keyOf(claim!), kind: 'complete' })
      case 'fails': {
        const last = claim!.attempt >= this.#scenario.maxAttempts
        return this.#settle(worker, { ...keyOf(claim!), kind: 'retry', delayMs: 0, last })
      }
      case 'releases':
        return this.#settle(worker, { ...keyOf(claim!), kind: 'release', delayMs: 0 })
      default:
        throw new RangeError(`no worker ${what}`)
    }
  }

  async #claim(worker: SimulatedWorker, alone: boolean): Promise<void> {
    const limit = alone ? 1 : this.#scenario.claimLimit
    const by = { worker: `w${this.#workers.indexOf(worker)}`, leaseMs, ...(alone ? { alone } : {}) }
    const claimed = await this.#store.claim([{ queue: queueName, limit }], by)
    this.ledger.claimed(claimed, alone, this.#clock.now())
    worker.holds = claimed.claims
    worker.sent = undefined
  }

  async #beat(claim: Claim): Promise<void> {
    const [answer] = await this.#store.extend([{ ...keyOf(claim), leaseMs }])
    this.ledger.extended(claim.id, claim.fence, answer!, this.#clock.now())
  }

  async #settle(worker: SimulatedWorker, item: SettleItem): Promise<void> {
    const [answer] = await this.#store.settle([item])
    this.ledger.settled(item, answer!)
    if (worker.sent === item) worker.sent = undefined
    else {
      worker.holds = worker.holds.slice(1)
      worker.sent = item
    }
  }
}

const keyOf = ({ queue, id, fence }: Claim) => ({ queue, id, fence })
