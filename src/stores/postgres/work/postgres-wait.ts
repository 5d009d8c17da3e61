/** Waiting on a Postgres store for a queue that may have a job. All waits of a process share one channel. */

import { randomUUID } from 'node:crypto'
import { longestTimerMs } from '../../../core/platform/timer.js'
import { dueAt } from '../../rules/sequence.js'
import { asksNow, isLed, type Lead } from '../../rules/wake-lead.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import type { PostgresListener } from '../client/postgres-listener.js'
import { LimitedQueue } from '../limits/limited-queue.js'
import type { LimitsLook } from '../limits/limits-look.js'
import { nextChange, PostgresIdle } from './postgres-idle.js'
import { beginWait, endWait, lookForWork, ringQueue } from './postgres-ring.js'
import type { NumberedQueue, PostgresQueues } from './postgres-settings.js'

/** The answer of `peek_2` about one queue. Instants are in ms; `place` is in µs. */
interface WaitLook {
  /** Of a limited queue only this is told, and whether it was rung. */
  readonly limited?: LimitsLook
  /** Whether a job is ready that did not fall due by itself, and whether any is. */
  readonly ready: boolean
  readonly due: boolean
  /** Whether it was rung for a job that is not due yet while nobody waited. */
  readonly unheard: boolean
  /** It is paused, or being resharded. */
  readonly stopped: boolean
  readonly spares: number
  readonly lease: number | null
  /** When the next job falls due, if it was rung so. */
  readonly place: number | null
  readonly lead: string | null
  readonly wake: number | null
}

/** A lost ring, and what users' own transactions commit, is found by then. */
const lookEveryMs = 2_000
/** Without notifications, looks come after 100 ms at first, and then at most a second apart. */
const firstLookMs = 100
const mostDeafMs = 1_000
/** Who waits is registered until a ring; one that was lost with the connection, or by a crash of the server, took it away unheard. */
const registerEvery = 5
/** How long a job that such a look finds is left to the waiter that was rung for it. */
const graceMs = 200
/** A process that was rung registers again after this time at the earliest. */
const againMs = 20

/** Somebody of this process who waits. */
interface LocalWaiter {
  readonly qids: ReadonlySet<number>
  wake(qid?: number): void
}

/** Hears news from when `attend` has resolved; what comes before the next `heard` makes it resolve at once. */
interface NewsEar {
  attend(): Promise<void>
  /** Resolves at news, at the latest after `forMs`, and sooner if it would be time to look. */
  heard(forMs: number): Promise<void>
  /** Resolves at news; for lack of them after `forMs`, or when the process wakes. */
  rested(forMs: number): Promise<void>
  /** Nothing more is heard: it was aborted, or the store is closed. */
  isOver(): boolean
  stop(): void
}

export class PostgresWait {
  readonly #connection: PostgresConnection
  readonly #listener: PostgresListener
  readonly #queues: PostgresQueues
  readonly #channel = `millrace_${randomUUID().replaceAll('-', '')}`
  readonly #waiters = new Set<LocalWaiter>()
  /** By queue: the number with which the channel has last said that it waits. */
  readonly #numbers = new Map<number, number>()
  #listening: Promise<void> | undefined
  #isClosed = false
  /** Absent: this process never sleeps. */
  readonly idle: PostgresIdle | undefined

  constructor(
    connection: PostgresConnection,
    listener: PostgresListener,
    queues: PostgresQueues,
    idlePollMs: number | undefined,
  ) {
    this.idle = idlePollMs === undefined ? undefined : new PostgresIdle(idlePollMs, () => this.#wake())
    this.#connection = connection
    this.#listener = listener
    this.#queues = queues
  }

  /** See `Store.wait`. */
  async forQueues(names: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    const until = performance.now() + forMs
    const queues = (await this.#queues.sharded(names)).flatMap(({ shards }) => shards)
    if (signal.aborted) return []
    const sleeper = new WaitingOne(
      queues.map(({ qid }) => qid),
      signal,
    )
    const release = this.#connection.hold()
    this.#waiters.add(sleeper)
    try {
      await this.#listen()
      let found = await this.#look(queues, { registers: true, isFirst: true })
      for (let looks = 0; found.length === 0 && !sleeper.isOver && !this.#isClosed; looks++) {
        const leftMs = until - performance.now()
        if (leftMs <= 0) break
        const isWoken = await sleeper.sleep(Math.min(leftMs, await this.#pauseMs(this.#lookAfterMs(looks))))
        if (sleeper.rung !== undefined || sleeper.isOver || performance.now() >= until || this.#isClosed) break
        found = await this.#stillThere(queues, sleeper, until, isWoken || looks % registerEvery === registerEvery - 1)
      }
      return this.#answer(queues, sleeper, found)
    } finally {
      release()
      this.#waiters.delete(sleeper)
      sleeper.end()
      await this.#leave(queues, sleeper)
    }
  }

  /** An ear for news of these topics, which all who wait for it hear: see `tellAll`. Ends when aborted. */
  async ear(topics: readonly number[], signal: AbortSignal): Promise<NewsEar> {
    const sleeper = new WaitingOne(topics, signal)
    const release = this.#connection.hold()
    this.#waiters.add(sleeper)
    let looks = 0
    const ear = {
      attend: async () => {
        this.#listener.stay()
        if (!this.#isClosed) await this.#register(topics)
      },
      heard: async (forMs: number) => {
        if (!sleeper.isOver && !this.#isClosed) await sleeper.sleep(Math.min(forMs, this.#lookAfterMs(looks++)))
      },
      rested: async (forMs: number) => {
        const pauseMs = this.#listener.isDeaf ? Math.min(forMs, this.#lookAfterMs(looks++)) : forMs
        if (!sleeper.isOver && !this.#isClosed) await sleeper.sleep(await this.#pauseMs(pauseMs))
      },
      isOver: () => sleeper.isOver || this.#isClosed,
      // Its row goes with the next news.
      stop: () => {
        release()
        this.#waiters.delete(sleeper)
        sleeper.end()
      },
    }
    try {
      await this.#listen()
      return ear
    } catch (error) {
      ear.stop()
      throw error
    }
  }

  /** The pause before the next look. Who hears nothing looks often at first. */
  #lookAfterMs(looks: number): number {
    return this.#listener.isDeaf ? Math.min(firstLookMs * 2 ** Math.min(looks, 10), mostDeafMs) : lookEveryMs
  }

  /** The pause, or until the process wakes if it sleeps. */
  async #pauseMs(pauseMs: number): Promise<number> {
    if (this.idle === undefined || !this.idle.isAsleep()) return pauseMs
    this.idle.knows((await this.#connection.call(nextChange, [])) as number | null)
    return this.idle.asleepForMs() || pauseMs
  }

  /** All who wait look once more. */
  #wake(): void {
    for (const waiter of this.#waiters) waiter.wake()
  }

  close(): void {
    this.#isClosed = true
    this.#wake()
  }

  #answer(queues: readonly NumberedQueue[], sleeper: WaitingOne, found: readonly NumberedQueue[]): string[] {
    const rung = queues.find(({ qid }) => qid === sleeper.rung)
    if (sleeper.isAborted || this.#isClosed) {
      // The caller has gone away: another waiter must get these.
      for (const { qid } of rung === undefined ? found : [rung])
        this.#connection.call(ringQueue, [qid, true, true]).catch(() => {})
      return []
    }
    return [...new Set([...(rung === undefined ? [] : [rung]), ...found].map(({ name }) => name))]
  }

  /** What a later look finds may be about to be taken by the waiter that was rung: only what stays counts. */
  async #stillThere(
    queues: readonly NumberedQueue[],
    sleeper: WaitingOne,
    until: number,
    registers: boolean,
  ): Promise<NumberedQueue[]> {
    const found = await this.#look(queues, { registers })
    if (found.length === 0) return found
    await sleeper.sleep(Math.min(graceMs, until - performance.now()))
    return sleeper.rung !== undefined || sleeper.isOver ? [] : this.#look(queues, { registers: true })
  }

  /** With `registers` the queues are waited for from now on; then looks. Returns those that want a claimer. */
  async #look(
    queues: readonly NumberedQueue[],
    { registers, isFirst = false }: { readonly registers: boolean; readonly isFirst?: boolean },
  ): Promise<NumberedQueue[]> {
    const qids = queues.map(({ qid }) => qid)
    this.#listener.stay()
    const [, looked] = await Promise.all([
      registers ? this.#register(qids) : undefined,
      this.#connection.call(lookForWork, [qids, isFirst]),
    ])
    const answer = looked as { now: number; queues: (WaitLook | null)[] }
    return queues.filter((_, i) => wantsClaimer(answer.queues[i]!, answer.now))
  }

  /** A ring for one who hears nothing would be lost. */
  async #register(qids: readonly number[]): Promise<void> {
    const { isDeaf, backend } = this.#listener
    if (isDeaf) return
    const numbers = await this.#connection.call(beginWait, [qids, this.#channel, backend, this.#numbersOf(qids)])
    for (const [i, n] of (numbers as number[]).entries()) this.#numbers.set(qids[i]!, n)
  }

  #numbersOf(qids: readonly number[]): number[] {
    return qids.map((qid) => this.#numbers.get(qid) ?? 0)
  }

  /** The queues for which nobody else of this process waits are waited for no more. */
  async #leave(queues: readonly NumberedQueue[], sleeper: WaitingOne): Promise<void> {
    const qids = queues.map(({ qid }) => qid).filter((qid) => ![...this.#waiters].some((one) => one.qids.has(qid)))
    if (qids.length === 0 || this.#isClosed || this.#listener.isDeaf) return
    const over = await this.#connection.call(endWait, [qids, this.#channel, this.#numbersOf(qids)]).catch(() => [])
    // A ring that was on its way to this waiter, and is not the one that woke it, is for another.
    for (const qid of over as number[])
      if (qid !== sleeper.rung) this.#connection.call(ringQueue, [qid, true, true]).catch(() => {})
  }

  #listen(): Promise<void> {
    this.#listening ??= this.#listener
      .listen(this.#channel, (channel, payload) => this.#heard(channel, Number(payload)))
      .catch((error: unknown) => {
        this.#listening = undefined
        throw error
      })
    return this.#listening
  }

  #heard(channel: string | undefined, qid: number): void {
    if (channel === undefined) {
      for (const waiter of this.#waiters) waiter.wake()
      return
    }
    if (channel !== this.#channel) return
    const waiters = [...this.#waiters].filter((one) => one.qids.has(qid))
    if (qid <= 0) {
      for (const waiter of waiters) waiter.wake()
      return
    }
    waiters[0]?.wake(qid)
    if (waiters.length > 1) this.#registerAgain(qid)
  }

  /** Others of this process still wait for the queue that was rung. */
  #registerAgain(qid: number): void {
    setTimeout(() => {
      if (this.#isClosed || ![...this.#waiters].some((one) => one.qids.has(qid))) return
      this.#register([qid]).catch(() => {})
    }, againMs).unref()
  }
}

/** One who sleeps until woken, and what woke it. */
class WaitingOne implements LocalWaiter {
  readonly qids: ReadonlySet<number>
  /** The queue that was rung. */
  rung: number | undefined
  readonly #signal: AbortSignal
  readonly #abort = () => this.wake()
  #isWoken = false
  #wake: () => void = () => {}

  constructor(qids: readonly number[], signal: AbortSignal) {
    this.qids = new Set(qids)
    this.#signal = signal
    signal.addEventListener('abort', this.#abort)
  }

  get isAborted(): boolean {
    return this.#signal.aborted
  }

  get isOver(): boolean {
    return this.isAborted
  }

  wake(qid?: number): void {
    this.rung ??= qid
    this.#isWoken = true
    this.#wake()
  }

  /** Resolves with whether something woke it before its time. */
  async sleep(forMs: number): Promise<boolean> {
    if (!this.#isWoken && forMs > 0)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(forMs, longestTimerMs))
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    const isWoken = this.#isWoken
    this.#isWoken = false
    return isWoken
  }

  end(): void {
    this.#signal.removeEventListener('abort', this.#abort)
  }
}

/** Whether some claimer must ask: there is work, or a change that is due, and no lead will find it. */
function wantsClaimer(look: WaitLook | null, now: number): boolean {
  // The shard has left its queue: who claims learns where its jobs are.
  if (look === null) return true
  if (look.limited !== undefined) {
    const limited = new LimitedQueue(look.limited)
    return limited.wakes(false) || (look.unheard && limited.wakes(true))
  }
  if (look.stopped) return false
  const lead: Lead | undefined =
    look.lead === null || look.wake === null ? undefined : { worker: look.lead, wakeAt: look.wake }
  const isDue = look.due || (look.lease !== null && Math.max(look.lease, look.spares) <= now)
  if (look.ready || (isDue && !asksNow(lead, now))) return true
  return look.unheard && look.place !== null && !(isLed(lead, now) && lead.wakeAt <= dueAt(look.place))
}
