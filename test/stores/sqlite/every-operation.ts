/**
 * A file on which every operation of a SQLite store has run, with the text of each statement that was prepared on the way and
 * those that were run.
 */

import type { Claim } from '#src/stores/contract/claim.js'
import type { ListQuery } from '#src/stores/contract/job-records.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { ClaimKey } from '#src/stores/contract/settle.js'
import type { SqliteClock } from '#src/stores/sqlite/file/sqlite-clock.js'
import { type Database, loadDriver, type Statement } from '#src/stores/sqlite/file/sqlite-driver.js'
import { openFile } from '#src/stores/sqlite/file/sqlite-file.js'
import { SqliteRoom } from '#src/stores/sqlite/file/sqlite-room.js'
import { SqliteTransaction } from '#src/stores/sqlite/rows/sqlite-transaction.js'
import { type SqliteOperations, sqliteOperations } from '#src/stores/sqlite/thread/sqlite-thread-api.js'
import { job } from './sqlite-scene.js'

type Writes = SqliteOperations['writes']
type Reads = SqliteOperations['reads']

const settings = { order: 'fifo', maxCrashes: 3, dead: { ageMs: 3_600_000, count: 1_000_000 } } as const
const rules = [{ limit: 1, windowMs: 3_600_000, moderate: false }]
const queues: readonly QueueSettings[] = [
  { ...settings, name: 'plain', kind: 'plain', resultsCount: 1_000_000 },
  { ...settings, name: 'lifo', kind: 'plain', order: 'lifo' },
  { ...settings, name: 'throttled', kind: 'plain', throttle: { scope: 'sites', by: 'group', rules } },
  { ...settings, name: 'orders', kind: 'ordered', shards: 2 },
  { ...settings, name: 'grouped', kind: 'ordered', shards: 2, throttle: { scope: 'hosts', by: 'group', rules } },
  { ...settings, name: 'moved', kind: 'ordered', shards: 1, order: 'lifo' },
]
const states = [undefined, 'scheduled', 'ready', 'running', 'completed', 'dead', 'waiting'] as const
const by = { worker: 'w', leaseMs: 60_000 }

export class EveryOperation {
  readonly db: Database
  readonly prepared = new Set<string>()
  /** Another connection to the file, as a store has it. */
  readonly open: () => Database
  readonly #clock: SqliteClock & { at: number }
  readonly #transaction: SqliteTransaction
  readonly #operations: SqliteOperations
  readonly #called = new Set<string>()
  #calls = 0

  private constructor(file: string, open: () => Database, clock: SqliteClock & { at: number }) {
    this.open = open
    this.db = open()
    this.db.exec('PRAGMA synchronous = OFF')
    this.#clock = clock
    const prepare = (sql: string): Statement => {
      this.prepared.add(sql)
      return this.db.prepare(sql)
    }
    this.#transaction = new SqliteTransaction(
      { exec: (sql) => this.db.exec(sql), prepare, close() {} },
      clock,
      new SqliteRoom(file, this.db),
    )
    this.#operations = sqliteOperations(this.#transaction)
  }

  /** `jobs`: how many each queue is filled with, over and over. */
  static async on(file: string, jobs: number): Promise<EveryOperation> {
    const clock = { at: 1_700_000_000_000, now: () => clock.at, mono: () => clock.at, bootId: () => 'boot' }
    const driver = await loadDriver()
    const all = new EveryOperation(file, () => openFile(file, driver, clock), clock)
    all.#call('open', queues)
    for (const { name } of queues) all.#fill(name, jobs)
    for (const { name } of queues) all.#run(name)
    all.#administer()
    all.#schedule(queues[0]!.name)
    all.#join('plain', 'lifo')
    all.#look()
    // What is left is a filled file.
    for (const { name } of queues) all.#fill(name, jobs)
    for (const { name } of queues) all.#claim(name, Math.ceil(jobs / 10))
    return all
  }

  /** Those of the store's operations that have not run. */
  get missed(): string[] {
    const names = [...Object.keys(this.#operations.reads), ...Object.keys(this.#operations.writes)]
    return names.filter((name) => !this.#called.has(name))
  }

  #call<N extends keyof Writes>(name: N, ...args: Parameters<Writes[N]>): ReturnType<Writes[N]> {
    this.#called.add(name)
    this.db.exec('BEGIN IMMEDIATE')
    const answer = (this.#operations.writes[name] as (...args: unknown[]) => ReturnType<Writes[N]>)(...args)
    this.#transaction.flush()
    this.db.exec('COMMIT')
    return answer
  }

  #read<N extends keyof Reads>(name: N, ...args: Parameters<Reads[N]>): ReturnType<Reads[N]> {
    this.#called.add(name)
    const answer = (this.#operations.reads[name] as (...args: unknown[]) => ReturnType<Reads[N]>)(...args)
    this.#transaction.forgetRows()
    return answer
  }

  /** Of each kind some: with and without a group, due now, at one moment and later. */
  #fill(queue: string, jobs: number): void {
    const call = this.#nextCall()
    const laterAt = this.#clock.at + 3_600_000
    const one = (i: number): NewJob =>
      job(`${call}-${i}`, {
        ...(i % 3 === 0 ? { group: `g${i % 100}` } : {}),
        ...(i % 4 === 0 ? { runAt: laterAt } : {}),
        ...(i % 7 === 0 ? { rememberMs: 1_000 } : {}),
      })
    for (let at = 0; at < jobs; at += 250) {
      const count = Math.min(250, jobs - at)
      const call = {
        callId: `${this.#nextCall()}`,
        queue,
        jobs: Array.from({ length: count }, (_, i) => one(at + i)),
      }
      this.#call('enqueue', [call])
    }
  }

  #nextCall(): number {
    this.#calls += 1
    return this.#calls
  }

  #claim(queue: string, limit: number, alone = false): ClaimKey[] {
    const from = { queue, limit, ...(queue === 'moved' ? { maxPayloads: 1 } : {}) }
    const { granted } = this.#call('claim', [from], { ...by, alone, heads: true })
    return granted.flatMap((one): ClaimKey[] =>
      'text' in one
        ? (JSON.parse(one.text) as [string][]).map(([id]) => ({ queue, id, fence: one.fence }))
        : (one as readonly Claim[]).map(({ id, fence }) => ({ queue, id, fence })),
    )
  }

  /** Every way in which a job can end. */
  #run(queue: string): void {
    const claims = this.#claim(queue, 12)
    const ends = [
      { kind: 'complete' },
      { kind: 'complete', result: { payload: '1', keepMs: 1_000 } },
      { kind: 'retry', delayMs: 1_000 },
      { kind: 'retry', delayMs: 0, last: true },
      { kind: 'release', delayMs: 0, hold: { of: 'group', forMs: 1_000 } },
      { kind: 'bury' },
      { kind: 'cancel' },
    ] as const
    const started = { startedMs: 0, progress: { fraction: 0.5 }, log: 'a', checkpoint: { payload: '1' } } as const
    const [first, second, ...others] = claims
    if (first !== undefined && second !== undefined) {
      this.#call('extend', [
        { ...first, leaseMs: 60_000 },
        { ...second, leaseMs: 60_000, beat: started },
      ])
      this.#call('adopt', first, 'w', 'v')
      this.#read('get', queue, second.id)
      this.#call('expect', [{ queue, id: second.id }], 'waiter01', 60_000)
      this.#call('expect', [{ queue, id: second.id }], 'waiter01', 0)
      this.#call('fail', queue, second.id, { delayMs: 0, reason: 'no' })
      this.#call('setFields', queue, second.id, { node: 'eu-3' })
    }
    const ended = others.slice(0, ends.length)
    this.#call(
      'settle',
      ended.map((key, i) => ({ ...key, ...ends[i % ends.length]! })),
    )
    this.#call('gone', others.slice(ends.length, ends.length + 1), 'w')
    // What is left is a crash, the results expire, and what was held is open.
    this.#clock.at += 120_000
    this.#claim(queue, 3)
    this.#claim(queue, 1, true)
    this.#call(
      'settle',
      this.#claim(queue, 3).map((key) => ({ ...key, kind: 'complete', result: { payload: '1' } })),
    )
    this.#fill(queue, 40)
    const [one, ...more] = this.#claim(queue, 8)
    if (one !== undefined) {
      const ids = [one, ...more].map(({ id }) => id)
      this.#call('complete', { queue, fence: one.fence, ids: JSON.stringify(ids), count: ids.length })
    }
    this.#call(
      'settle',
      this.#claim(queue, 8).map((key) => ({ ...key, kind: 'complete' })),
    )
  }

  #schedule(queue: string): void {
    const { id: _, ...rest } = job('a')
    const times = { rule: { everyMs: 1_000, timeZone: 'UTC' }, jitterMs: 0 }
    const policy = { onMissed: 'latest', overlap: 'skip' } as const
    const [revision, dueAt, nextAt] = ['r', this.#clock.at, this.#clock.at + 1_000]
    for (const name of ['s', 't'])
      this.#call(
        'putSchedule',
        { definition: { name, queue, job: rest, ...times, ...policy }, revision, paused: false, nextAt: dueAt },
        undefined,
      )
    const tick = { name: 's', queue, revision, dueAt, nextAt, jobs: [job('s@1')], unless: 's@0', skips: 0, misses: 0 }
    this.#call('dueSchedules', 'w', 60_000, 10)
    this.#call('tick', { ...tick, callId: `${this.#nextCall()}` })
    this.#read('schedule', 's')
    this.#read('schedules', undefined, 10)
    this.#call('removeSchedule', 't', revision)
    this.#call('resign', 'w')
  }

  /** Joins of which each meets another end, and their members. */
  #join(queue: string, of: string): void {
    const place = { set: 'all', onDead: 'hold', keepsResults: true } as const
    const set = { name: 'all', queue: of, isMany: true, onDead: 'hold', keepsResults: true } as const
    for (const id of ['open', 'late', 'failed', 'deleted']) {
      const member = (number: number): NewJob =>
        job(`${id}.${number}`, { memberOf: [{ ...place, join: { queue, id }, number }] })
      const join = { sets: [{ ...set, ids: id }], withinMs: 1_000, sealWithinMs: 1_000, cancelsRest: true } as const
      this.#call('enqueueGraph', [
        { callId: `${this.#nextCall()}`, queue, jobs: [job(id, { join })] },
        { callId: `${this.#nextCall()}`, queue: of, jobs: [0, 1, 2, 3, 4, 5].map(member) },
      ])
      this.#call('enqueue', [{ callId: `${this.#nextCall()}`, queue: of, jobs: [member(6)] }])
    }
    this.#lists(queue)
    this.#call('seal', { queue, id: 'failed' }, { all: 7 })
    this.#read('lookAtJoin', { queue, id: 'open' })
    const [first, ...more] = this.#claim(of, 30)
    const result = { payload: '1', onlyForJoins: true } as const
    this.#call('settle', [
      { ...first!, kind: 'bury' },
      ...more.slice(0, 6).map((key) => ({ ...key, kind: 'complete', result }) as const),
    ])
    this.#read('endsIn', { queue, id: 'open' }, 'all', 0, 10)
    this.#call('revive', of, 'all')
    this.#call('cancel', of, { ids: ['failed.6', 'failed.5'] })
    this.#call('delete', queue, { ids: ['deleted'] })
    this.#clock.at += 120_000
    for (const _ of [1, 2, 3]) if (this.#read('isSweepDue')) this.#call('sweep')
    this.#call('revive', queue, 'all')
    this.#call('repair', queue)
    this.#call('clear', queue)
    this.#call('clear', of)
    this.#step(of)
    this.#die(of)
  }

  /** Steps, a signal that comes first, a wait that a signal ends, and one in vain. */
  #step(queue: string): void {
    const ids = ['stepped', 'signalled', 'vain']
    this.#call('enqueue', [{ callId: `${this.#nextCall()}`, queue, jobs: ids.map((id) => job(id)) }])
    for (const key of this.#claim(queue, 30)) {
      this.#call('keepStep', key, { name: 'charge', kind: 'step', payload: '1' }, 1_000)
      this.#call('keepStep', key, { name: 'nap', kind: 'sleep', forMs: 1 }, 1_000)
      this.#read('readSteps', key)
      this.#call('forgetStep', key, 'nap', 'step')
      this.#call('signal', key, { name: 'go' })
      if (key.id !== 'stepped') this.#call('forgetStep', key, 'go', 'signal')
      this.#call('settle', [{ ...key, kind: 'wait', signal: 'go', withinMs: 1_000 }])
    }
    this.#call('signal', { queue, id: 'signalled' }, { name: 'go', payload: '1' })
    this.#clock.at += 10_000
    if (this.#read('isWaitOver')) this.#call('endVainWaits')
    this.#call('clear', queue)
  }

  /** Deaths that are reported. */
  #die(queue: string): void {
    const jobs = ['a', 'b'].map((id) => ({ ...job(id), reportsDeath: true as const }))
    this.#call('enqueue', [{ callId: `${this.#nextCall()}`, queue, jobs }])
    this.#call('bury', queue, 'all')
    this.#read('backlog', [queue], 10)
    this.#call('reported', queue, this.#read('unreported', [queue], ['send'], 1))
    this.#call('clear', queue)
  }

  #administer(): void {
    const record = { host: 'h', boot: 'b', pidns: 'n', pid: 1, ticks: 1, queues: [], concurrency: 1, running: 0 }
    this.#call('beat', { ...record, id: 'w', startedAt: 0 }, 1_000)
    this.#call('signalWorker', 'w', 'stop')
    this.#read('workers')
    this.#read('held', 'w')
    this.#call('setThrottle', 'throttled', rules)
    this.#call('setRate', 'throttled', 'g0', rules)
    this.#call('setRate', 'throttled', 'g0', undefined)
    this.#call('setThrottle', 'grouped', rules)
    for (const { name, kind } of queues) {
      for (const where of ['all', 'failed', { ids: ['1-1'] }] as const) {
        this.#call('runNow', name, where)
        if (kind === 'plain' && typeof where === 'object')
          this.#call('reschedule', name, where.ids, { priority: 3, delayMs: 5 })
        this.#fill(name, 20)
        this.#call('cancel', name, where)
        this.#fill(name, 20)
        this.#call('bury', name, where)
        this.#call('revive', name, where)
        this.#call('delete', name, where)
        this.#call('bury', name, 'all')
        this.#call('deleteDead', name, where)
        this.#fill(name, 20)
      }
      this.#call('pause', name)
      this.#call('resume', name)
      this.#call('drain', name)
      this.#call('setLimits', name, { maxCrashes: 3 })
      this.#call('resume', name)
      this.#passLimit(name)
    }
    this.#call('move', 'orders', 'moved')
    this.#fill('orders', 20)
    this.#call('cancel', 'orders', 'all')
    this.#clock.at += 120_000
    for (let more = true; more; ) {
      this.#claim('orders', 0)
      more = this.#call('reshard', 'orders', 3).more
    }
    this.#call('removeWorker', 'w')
    for (const { name } of queues) this.#call('clear', name)
  }

  /** Beyond so many failed jobs they are not sorted, but met on the way. */
  #passLimit(name: string): void {
    const counts = ['scheduled', 'ready', 'running', 'completed', 'dead', 'retries']
    const set = (by: number) => {
      this.db.exec(
        `UPDATE queue SET ${counts.map((count) => `${count} = ${count} + ${by}`).join(', ')} WHERE name = '${name}'`,
      )
      // The store itself never changes rows that it holds by a statement.
      this.#transaction.forgetRows()
    }
    set(1_000_000)
    for (const step of ['runNow', 'cancel', 'bury', 'delete'] as const) {
      this.#call(step, name, 'failed')
      this.#call(step, name, 'all')
    }
    this.#lists(name)
    set(-1_000_000)
  }

  #look(): void {
    for (const { name } of queues) {
      this.#fill(name, 30)
      this.#lists(name)
      this.#read('getDead', name, 'x')
      this.#read('peek', [name], [name])
      this.#read('throttleState', name, 'g0')
      this.#read('rates', name, 10)
      this.#call('pauseGroup', name, 'g0')
      this.#read('holds', name, { groups: ['g0'], limit: 10 })
      this.#call('resumeGroup', name, 'g0')
      this.#call('release', name, 'g0')
      this.#call('release', name)
      this.#call('repair', name)
    }
    this.#read(
      'depth',
      queues.map(({ name }) => name),
    )
    for (const watcher of ['one', 'other']) this.#call('watchLive', 'orders', watcher, 1_000)
    this.#read('isWatched', 'orders')
    for (let n = 0; n < 50; n += 1) this.#call('publishLive', 'orders', `message ${n}`)
    this.#read('readLive', 'orders', 0)
    this.#call('unwatchLive', 'orders', 'one')
    const counts = { enqueued: 1, started: 1, completed: 1, failed: 0, dead: 0, crashed: 0, cancelled: 0, runMs: 5 }
    const entry = { queue: 'orders', agoMs: 0, counts: { ...counts, runTimes: [1, 0, 0, 0, 0, 0, 0] } }
    this.#call('addHistory', [entry, { ...entry, gauges: { lagMs: 0, waiting: 1, running: 1 } }])
    this.#read('readHistory', ['orders'], { step: 'hour', fromAt: 0, toAt: this.#clock.at + 1 })
    this.#read('queues')
    this.#read('ended', [{ queue: 'orders', id: 'x' }])
    this.#read('dataVersion')
  }

  /** Each listing, and how it goes on. */
  #lists(name: string): void {
    const turn = (query: Omit<ListQuery, 'limit'>) => {
      for (let cursor: string | undefined, page = 0; page === 0 || (cursor !== undefined && page < 3); page += 1)
        cursor = this.#read('list', name, { ...query, limit: 1, ...(cursor === undefined ? {} : { cursor }) }).cursor
    }
    for (const order of ['id', 'time', 'retry'] as const)
      for (const state of states) turn({ by: order, ...(state === undefined ? {} : { state }) })
    turn({ by: 'time', state: 'ready', group: 'g0' })
  }
}
