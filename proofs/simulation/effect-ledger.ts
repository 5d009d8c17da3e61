/**
 * The effect ledger: what a producer was told and what workers were given, and the promises judged by nothing else.
 * It never looks into the store.
 */

import type { Claim, Claimed, Enqueued, ExtendAnswer, SettleAnswer, SettleItem } from 'millrace/store'
import { leaseMs, maxCrashes, type Scenario, type SentJob, windowMs } from './scenarios.js'

/** A promise is broken. */
export class Violation extends Error {}

interface Holding {
  readonly fence: number
  readonly alone: boolean
  readonly group: string
  until: number
  readonly inHand: readonly SentJob[]
}

/** What is known of an id. */
interface Line {
  waiting: SentJob[]
  held: Holding | undefined
  failures: number
  charged: number
  isSuspect: boolean
  dueAt: number
}

export class EffectLedger {
  readonly #scenario: Scenario
  readonly #lines = new Map<string, Line>()
  readonly #ended = new Set<string>()
  readonly #starts: number[] = []
  #lastFence = 0

  constructor(scenario: Scenario) {
    this.#scenario = scenario
  }

  /** Ids of which something waits or runs, for the words of a violation. */
  get open(): string[] {
    return [...this.#lines].filter(([, { waiting, held }]) => waiting.length > 0 || held).map(([id]) => id)
  }

  enqueued(job: SentJob, answer: Enqueued, now: number): void {
    if (answer !== 'added' && answer !== 'merged')
      throw new Violation(`the enqueue of ${job.payload} was answered '${answer}'`)
    const line = this.#line(job.id)
    if (line.waiting.length === 0 && line.held === undefined) line.dueAt = now + (job.delayMs ?? 0)
    line.waiting.push(job)
  }

  claimed({ claims, crashed, buried }: Claimed, alone: boolean, now: number): void {
    const dead = new Set(buried.map(({ id }) => id))
    for (const { id, charged } of crashed) this.#crash(id, { charged, isDead: dead.has(id) }, now)
    const late = [...this.#lines].filter(([, { held }]) => held !== undefined && held.until <= now)
    if (late.length > 0) throw new Violation(`a claim left the ended lease of ${late[0]![0]} as it was`)
    for (const claim of claims) this.#take(claim, alone, now)
    if (claims.length > 0) this.#lastFence = claims[0]!.fence
    this.#judgeLimits(now)
  }

  settled(item: SettleItem, answer: SettleAnswer): void {
    const line = this.#line(item.id)
    const isCurrent = line.held?.fence === item.fence
    if (isCurrent !== (answer === 'ok'))
      throw new Violation(
        `the settle of ${isCurrent ? 'the current' : 'an old'} claim of ${item.id} was answered '${answer}'`,
      )
    if (!isCurrent) return
    const { inHand } = line.held!
    line.held = undefined
    if (item.kind === 'complete') this.#complete(line, inHand)
    else if (item.kind === 'retry' && item.last) this.#exhaust(line, inHand)
    else {
      line.waiting = [...line.waiting, ...inHand]
      if (item.kind === 'retry') line.failures += 1
      // A release without delay leaves a suspect what it is.
      if (item.kind !== 'release') line.isSuspect = false
    }
  }

  extended(id: string, fence: number, answer: ExtendAnswer, now: number): void {
    const { held } = this.#line(id)
    const isCurrent = held?.fence === fence
    if (isCurrent !== (answer === 'ok'))
      throw new Violation(`the beat of ${isCurrent ? 'the current' : 'an old'} claim of ${id} was answered '${answer}'`)
    if (isCurrent) held.until = Math.max(held.until, now + leaseMs)
  }

  #line(id: string): Line {
    const known = this.#lines.get(id)
    if (known !== undefined) return known
    const line = { waiting: [], held: undefined, failures: 0, charged: 0, isSuspect: false, dueAt: 0 }
    this.#lines.set(id, line)
    return line
  }

  #take(claim: Claim, alone: boolean, now: number): void {
    const { id, fence } = claim
    const line = this.#line(id)
    if (line.held !== undefined) throw new Violation(`${id} runs twice: fences ${line.held.fence} and ${fence}`)
    if (fence <= this.#lastFence) throw new Violation(`the fence ${fence} of ${id} is not above ${this.#lastFence}`)
    if (now < line.dueAt) throw new Violation(`${id} was given ${line.dueAt - now} ms early`)
    if (line.isSuspect && !alone) throw new Violation(`${id} is suspect, and was given in company`)
    if (claim.attempt !== line.failures + 1)
      throw new Violation(`${id} has failed ${line.failures} times, and is given as attempt ${claim.attempt}`)
    const expected = inOrder(line.waiting)
    const given = claim.payloads?.map(({ payload }) => String(payload)) ?? [String(claim.payload)]
    if (given.join() !== expected.map(({ payload }) => payload).join())
      throw new Violation(
        `${id} waits with ${expected.map(({ payload }) => payload).join()}, and is given ${given.join()}`,
      )
    line.held = { fence, alone, group: claim.group ?? '', until: now + leaseMs, inHand: expected }
    line.waiting = []
    this.#starts.push(now)
  }

  #judgeLimits(now: number): void {
    const { throttle, maxRunning } = this.#scenario.settings
    const limit = throttle?.rules[0]?.limit ?? Number.POSITIVE_INFINITY
    const started = this.#starts.filter((at) => at >= now - windowMs).length
    if (started > limit) throw new Violation(`${started} starts within ${windowMs} ms`)
    const held = [...this.#lines.values()].flatMap((line) => line.held ?? [])
    const most = typeof maxRunning === 'number' ? maxRunning : Number.POSITIVE_INFINITY
    if (held.length > most) throw new Violation(`${held.length} jobs run at a time`)
    if (typeof maxRunning === 'object')
      for (const group of new Set(held.map((one) => one.group))) {
        const running = held.filter((one) => one.group === group).length
        if (running > maxRunning.perGroup) throw new Violation(`${running} jobs of ${group} run at a time`)
      }
  }

  #crash(id: string, { charged, isDead }: { readonly charged: boolean; readonly isDead: boolean }, now: number): void {
    const line = this.#line(id)
    const { held } = line
    if (held === undefined) throw new Violation(`${id} crashed, and did not run`)
    if (held.until > now) throw new Violation(`${id} crashed ${held.until - now} ms before its lease ended`)
    if (charged !== held.alone) throw new Violation(`the crash of ${id} was ${charged ? '' : 'not '}charged to it`)
    line.held = undefined
    line.charged += charged ? 1 : 0
    if (isDead !== line.charged >= maxCrashes)
      throw new Violation(`${id} was ${isDead ? '' : 'not '}buried after ${line.charged} crashes`)
    if (isDead) this.#exhaust(line, held.inHand)
    else {
      line.waiting = [...line.waiting, ...held.inHand]
      line.isSuspect = true
    }
  }

  #complete(line: Line, done: readonly SentJob[]): void {
    for (const { payload } of done) {
      if (this.#ended.has(payload)) throw new Violation(`${payload} was completed twice`)
      this.#ended.add(payload)
    }
    Object.assign(line, { failures: 0, charged: 0, isSuspect: false })
  }

  /** No attempts are left: the oldest payload in hand is buried, and what is left begins anew. */
  #exhaust(line: Line, [oldest, ...rest]: readonly SentJob[]): void {
    this.#ended.add(oldest!.payload)
    Object.assign(line, { waiting: [...line.waiting, ...rest], failures: 0, charged: 0, isSuspect: false })
  }
}

const inOrder = (jobs: readonly SentJob[]): SentJob[] =>
  jobs.toSorted((one, other) => (one.score ?? 0) - (other.score ?? 0))
