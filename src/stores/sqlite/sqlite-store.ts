/**
 * The SQLite store: jobs in one file that several processes of a machine share. All SQL runs in a thread of its own
 * (`sqlite-thread-server.ts`), so that neither handlers nor beats ever wait for a disk.
 */

import { setMaxListeners } from 'node:events'
import { resolve } from 'node:path'
import { InvalidArgumentError } from '../../core/errors.js'
import type { Claimed, Claimer, ClaimFrom } from '../contract/claim.js'
import type { History } from '../contract/history.js'
import type { Deaths, Records } from '../contract/job-records.js'
import type { Joins } from '../contract/joins.js'
import type { LiveMessages } from '../contract/live-messages.js'
import type { EnqueueCall, Enqueued } from '../contract/new-job.js'
import type { QueueDepth } from '../contract/queue-depth.js'
import type { QueueSettings, StoredQueue } from '../contract/queue-settings.js'
import type { Schedules } from '../contract/schedules.js'
import type { ExtendAnswer, ExtendItem, SettleAnswer, SettleItem } from '../contract/settle.js'
import type { Steps } from '../contract/steps.js'
import type { Store } from '../contract/store.js'
import type { FsckFinding, FsckRepair, StoreHealth } from '../contract/store-health.js'
import type { Throttles } from '../contract/throttles.js'
import type { Transactions } from '../contract/transactions.js'
import type { WorkerRegistry } from '../contract/worker-registry.js'
import { liveMessages } from '../sql/live-watches.js'
import { loadClock } from './file/sqlite-clock.js'
import type { DriverName } from './file/sqlite-driver.js'
import { typedError } from './file/sqlite-errors.js'
import { absenceOf } from './sqlite-examine.js'
import { sqliteTraits } from './sqlite-traits.js'
import { Ringing, SqliteWait } from './sqlite-wait.js'
import { SqliteThreadClient, type StartThread } from './thread/sqlite-thread-client.js'
import { graphCallOf, sentForm } from './work/sqlite-bare-call.js'
import { claimsOf } from './work/sqlite-claim-text.js'
import { completionsOf } from './work/sqlite-completion.js'
import { SqliteUserEnqueue } from './work/sqlite-user-enqueue.js'

interface SqliteDescriptor {
  /** The path of the file. The file and its directory are made if they do not exist. */
  readonly file: string
  /** URL of a module that exports `clock`, a `SqliteClock`; absent: the machine's clocks. */
  readonly clock?: string
  /** The package through which this process reaches the file; absent: the default of this Node. */
  readonly driver?: DriverName
  /** The weight, in bytes, at which a claim is full. Default 1 MiB. */
  readonly mostClaimBytes?: number
  /** Starts the thread. By default each store has a thread of its own. */
  readonly startThread?: StartThread
}

export class SqliteStore implements Store {
  readonly traits = sqliteTraits
  readonly records: Records
  readonly workers: WorkerRegistry
  readonly throttles: Throttles
  readonly schedules: Schedules
  readonly health: StoreHealth
  readonly transactions: Transactions
  readonly live: LiveMessages
  readonly history: History
  readonly joins: Joins
  readonly steps: Steps
  readonly deaths: Deaths
  readonly #closing = new AbortController()
  readonly #userEnqueue: SqliteUserEnqueue
  readonly #clockUrl: string | undefined
  readonly #thread: SqliteThreadClient
  readonly #wait: SqliteWait
  readonly #file: string

  /** Nothing is opened before the first call. Throws `InvalidArgumentError` if `file` names no file. */
  constructor({ file, clock, driver, mostClaimBytes, startThread }: SqliteDescriptor) {
    if (file === '' || file === ':memory:') {
      throw new InvalidArgumentError(
        `a SQLite store needs a file, such as '.millrace/jobs.db', but was given '${file}'. For a store that is not kept use 'memory:'.`,
      )
    }
    this.#file = resolve(file)
    this.#thread = new SqliteThreadClient(
      { file: this.#file, clock, driver, mostClaimBytes },
      (reply) => this.#wait.told(reply),
      startThread,
    )
    this.#wait = new SqliteWait(this.#file, this.#thread)
    this.records = sqliteRecords(this.#thread, this.#wait)
    this.throttles = {
      state: (queue, group) => this.#thread.call('throttleState', queue, group),
      set: (queue, rules, by) => this.#thread.call('setThrottle', queue, rules, by),
      setRate: (queue, group, rules) => this.#thread.call('setRate', queue, group, rules),
      rates: (queue, limit) => this.#thread.call('rates', queue, limit),
      holds: (queue, query) => this.#thread.call('holds', queue, query),
      release: (queue, group) => this.#thread.call('release', queue, group),
      pause: (queue, group) => this.#thread.call('pauseGroup', queue, group),
      resume: (queue, group) => this.#thread.call('resumeGroup', queue, group),
    }
    this.schedules = sqliteSchedules(this.#thread, this.#wait)
    this.health = sqliteHealth(this.#thread, this.#file)
    // Each watch adds a listener, and the number of watches has no limit.
    setMaxListeners(0, this.#closing.signal)
    this.live = sqliteLive(this.#thread, this.#wait, this.#closing.signal)
    this.history = {
      add: (entries) => this.#thread.call('addHistory', entries),
      read: (queues, span) => this.#thread.call('readHistory', queues, span),
    }
    this.joins = sqliteJoins(this.#thread)
    this.steps = {
      keep: (claim, step, leaseMs) => this.#thread.call('keepStep', claim, step, leaseMs),
      read: (job) => this.#thread.call('readSteps', job),
      forget: (job, name, of) => this.#thread.call('forgetStep', job, name, of),
      signal: (job, signal) => this.#thread.call('signal', job, signal),
      // As with joins.
      sweep: async () =>
        (await this.#thread.call('isWaitOver')) ? this.#thread.call('endVainWaits') : { woken: 0, more: false },
    }
    this.deaths = this.#thread.calls('unreported', 'backlog', 'reported')
    this.#clockUrl = clock
    this.#userEnqueue = new SqliteUserEnqueue(this.#file, driver, mostClaimBytes, (queues) => this.#wait.ring(queues))
    this.transactions = this.#userEnqueue
    this.workers = {
      ...this.#thread.calls('beat', 'held', 'gone', 'adopt'),
      signal: (id, signal) => this.#thread.call('signalWorker', id, signal),
      remove: (id) => this.#thread.call('removeWorker', id),
      list: () => this.#thread.call('workers'),
    }
  }

  async open(queues: readonly QueueSettings[], how = { follows: false }): Promise<StoredQueue[]> {
    const stored = await this.#thread.call('open', queues, how)
    this.#userEnqueue.clock = await loadClock(this.#clockUrl)
    return stored
  }

  async enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    const { sent, answersOf } = sentForm(calls)
    return answersOf(await this.#thread.call('enqueue', sent))
  }

  async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    const { granted, ...claimed } = await this.#thread.call('claim', from, by)
    try {
      return { ...claimed, claims: granted.flatMap(claimsOf) }
    } catch (error) {
      throw typedError(this.#file, error)
    }
  }

  async settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    const completions = completionsOf(items)
    if (completions === undefined) return this.#thread.call('settle', items)
    const answers = await this.#thread.call('complete', completions)
    return answers === true ? items.map(() => 'ok') : answers
  }

  extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]> {
    return this.#thread.call('extend', items)
  }

  depth(queues: readonly string[]): Promise<{ readonly now: number; readonly depths: QueueDepth[] }> {
    return this.#thread.call('depth', queues)
  }

  async wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    this.#thread.refuseClosed()
    return this.#wait.forQueues(queues, forMs, signal)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const closed = this.#thread.close()
    this.#wait.close()
    await closed
  }
}

function sqliteHealth(thread: SqliteThreadClient, file: string): StoreHealth {
  const told = (error: Error): FsckFinding[] => {
    if (error.name === 'UnknownQueueError') throw error
    return [{ level: 'error', what: 'file', text: error.message }]
  }
  const found = (findings: FsckFinding[]) => (findings.length === 0 ? [absenceOf(file)] : findings)
  const look = (queue?: string) => thread.call('check', queue)
  const check = (queue?: string) => look(queue).then(found, told)
  return {
    examine: () => thread.call('examine').then(found, told),
    check,
    async repair(queue) {
      const before = await look(queue).catch(told)
      // Writing to a damaged file mends nothing, and would make one that is not there.
      if (before.length === 0 || before.some(({ level, what }) => what === 'file' && level !== 'ok'))
        return { mended: [], left: found(before) }
      const mended: FsckRepair[] = []
      for (const { name } of await thread.call('queues'))
        if (queue === undefined || queue === name) mended.push(...(await thread.call('repair', name)))
      return { mended, left: await check(queue) }
    },
  }
}

function sqliteJoins(thread: SqliteThreadClient): Joins {
  return {
    enqueue: (calls) => thread.call('enqueueGraph', calls.map(graphCallOf)),
    seal: (join, sizes) => thread.call('seal', join, sizes),
    look: (join) => thread.call('lookAtJoin', join),
    ends: (join, set, from, limit) => thread.call('endsIn', join, set, from, limit),
    // Most sweeps find nothing to do, and cause no commit, after which all would look for a change.
    sweep: async () => ((await thread.call('isSweepDue')) ? thread.call('sweep') : { failed: [], more: false }),
  }
}

function sqliteSchedules(thread: SqliteThreadClient, wait: SqliteWait): Schedules {
  return {
    ...thread.calls('tick', 'resign'),
    put: (change, expects) => thread.call('putSchedule', change, expects),
    remove: (name, expects) => thread.call('removeSchedule', name, expects),
    get: (name) => thread.call('schedule', name),
    list: (after, limit) => thread.call('schedules', after, limit),
    due: (worker, leadMs, limit) => thread.call('dueSchedules', worker, leadMs, limit),
    async changed(forMs, signal) {
      thread.refuseClosed()
      await wait.forSchedules(forMs, signal)
    },
  }
}

function sqliteRecords(thread: SqliteThreadClient, wait: SqliteWait): Records {
  return {
    ...thread.calls('queues', 'get', 'list', 'cancel', 'delete', 'runNow', 'bury', 'fail', 'setFields', 'expect'),
    ...thread.calls('reschedule', 'pause', 'resume', 'drain', 'setLimits', 'clear', 'reshard', 'move'),
    morgue: {
      get: (queue, id) => thread.call('getDead', queue, id),
      list: (queue, query) => thread.call('list', queue, { ...query, state: 'dead' }),
      revive: (queue, where) => thread.call('revive', queue, where),
      delete: (queue, where) => thread.call('deleteDead', queue, where),
    },
    async watch(jobs, forMs, signal) {
      thread.refuseClosed()
      return wait.forResults(jobs, forMs, signal)
    },
  }
}

function sqliteLive(thread: SqliteThreadClient, wait: SqliteWait, closing: AbortSignal): LiveMessages {
  return liveMessages(
    {
      ...thread.calls('isWatched', 'publishLive', 'readLive', 'watchLive', 'unwatchLive'),
      refuseClosed: () => thread.refuseClosed(),
      async listen() {
        const ear = new Ringing()
        const stop = await wait.listenForMessages(() => ear.ring())
        return { attend: async () => {}, heard: (forMs, over) => ear.heard(forMs, over), stop }
      },
    },
    closing,
  )
}
