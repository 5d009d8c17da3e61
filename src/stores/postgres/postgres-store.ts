/** The Postgres store: jobs in tables of a schema of its own. */

import { setMaxListeners } from 'node:events'
import { setImmediate as breath } from 'node:timers/promises'
import { ClosedError } from '../../core/errors.js'
import { bound } from '../../core/values/bound.js'
import { keptCall } from '../../core/values/kept-call.js'
import type { Claimed, Claimer, ClaimFrom } from '../contract/claim.js'
import type { History } from '../contract/history.js'
import type { Deaths, Records } from '../contract/job-records.js'
import type { Joins } from '../contract/joins.js'
import type { LiveMessages } from '../contract/live-messages.js'
import type { EnqueueCall, Enqueued } from '../contract/new-job.js'
import type { Migration } from '../contract/provision.js'
import type { QueueDepth } from '../contract/queue-depth.js'
import type { QueueSettings, StoredQueue } from '../contract/queue-settings.js'
import type { Schedules } from '../contract/schedules.js'
import type { ExtendAnswer, ExtendItem, SettleAnswer, SettleItem } from '../contract/settle.js'
import type { Steps } from '../contract/steps.js'
import type { Store } from '../contract/store.js'
import type { StoreHealth } from '../contract/store-health.js'
import type { WorkerRegistry } from '../contract/worker-registry.js'
import { mostClaimBytes } from '../rules/claim-weight.js'
import { liveMessages } from '../sql/live-watches.js'
import { addHistory, readHistory } from '../sql/sql-history.js'
import { isWatched, publishLive, readLive, unwatchLive, watchLive } from '../sql/sql-live.js'
import type { PostgresAddress } from './client/postgres-address.js'
import { PostgresConnection } from './client/postgres-connection.js'
import type { MakePostgresClient } from './client/postgres-driver.js'
import { PostgresListener } from './client/postgres-listener.js'
import { PostgresDoctor } from './health/postgres-doctor.js'
import { checkPostgres } from './health/postgres-fsck.js'
import { repairPostgres } from './health/postgres-fsck-repair.js'
import { PostgresReports } from './joins/join-reports.js'
import { PostgresSteps } from './joins/postgres-job-steps.js'
import { PostgresJoins } from './joins/postgres-joins.js'
import { postgresFunctions } from './postgres-functions.js'
import { postgresTraits } from './postgres-traits.js'
import { postgresDeaths } from './records/postgres-deaths.js'
import { postgresRecords } from './records/postgres-records.js'
import { postgresRegistry } from './records/postgres-registry.js'
import { postgresSchedules } from './records/postgres-schedules.js'
import { PostgresThrottles } from './records/postgres-throttles.js'
import { StepRunner } from './records/step-runner.js'
import { ensureSchema, migrateSchema, migrationText } from './schema/postgres-schema.js'
import { PostgresTransactions } from './user/postgres-transactions.js'
import { PostgresClaim } from './work/postgres-claim.js'
import { depthsOf } from './work/postgres-depth.js'
import { PostgresEnqueue } from './work/postgres-enqueue.js'
import { extendItems } from './work/postgres-extend.js'
import type { PostgresIdle } from './work/postgres-idle.js'
import { PostgresRecovery } from './work/postgres-recovery.js'
import { PostgresReshard } from './work/postgres-reshard.js'
import { tellAll, topics } from './work/postgres-ring.js'
import { PostgresQueues } from './work/postgres-settings.js'
import { PostgresSettle } from './work/postgres-settle.js'
import { PostgresUpkeep } from './work/postgres-upkeep.js'
import { PostgresWait } from './work/postgres-wait.js'

/** How long `close` waits for calls under way. */
const closeMs = 1_000

interface PostgresStoreParts {
  readonly address: PostgresAddress
  /** The weight in bytes at which a claim is full. Default 1 MiB. */
  readonly mostClaimBytes?: number
  /** Makes the clients of its connections. Default: those of the driver `pg`. */
  readonly makeClient?: MakePostgresClient
}

export class PostgresStore implements Store {
  readonly traits = postgresTraits
  readonly joins: Joins
  readonly steps: Steps
  readonly deaths: Deaths
  readonly transactions: PostgresTransactions
  readonly schedules: Schedules
  readonly workers: WorkerRegistry
  readonly records: Records
  readonly live: LiveMessages
  readonly history: History
  readonly health: StoreHealth
  readonly throttles: PostgresThrottles
  readonly migration: Migration
  readonly idle: PostgresIdle | undefined
  readonly #connection: PostgresConnection
  readonly #listener: PostgresListener
  readonly #queues: PostgresQueues
  readonly #enqueue: PostgresEnqueue
  readonly #claim: PostgresClaim
  readonly #settle: PostgresSettle
  readonly #wait: PostgresWait
  readonly #runner: StepRunner
  readonly #closing = new AbortController()
  /** Resolves when the schema is there. */
  readonly #ready = keptCall(() => ensureSchema(this.#connection, this.#connection.schema, postgresFunctions))
  #isClosed = false
  /** The calls that have no answer yet, each with the way to reject it. */
  readonly #calls = new Map<Promise<unknown>, (error: Error) => void>()

  constructor({ address, mostClaimBytes: most = mostClaimBytes, makeClient }: PostgresStoreParts) {
    const connection = new PostgresConnection(address, address.schema ?? 'millrace', makeClient)
    const queues = new PostgresQueues(connection)
    const reports = new PostgresReports(connection)
    const recovery = new PostgresRecovery(connection, reports)
    const upkeep = new PostgresUpkeep(connection)
    this.#connection = connection
    this.#listener = new PostgresListener(connection, address, makeClient)
    this.#queues = queues
    this.transactions = new PostgresTransactions(connection.schema, queues)
    this.throttles = new PostgresThrottles(connection, queues, (call) => this.#underWay(call))
    this.#enqueue = new PostgresEnqueue(connection, queues, reports, upkeep)
    this.#claim = new PostgresClaim({ connection, queues, recovery, reports, upkeep, mostClaimBytes: most })
    this.#settle = new PostgresSettle(connection, queues, recovery)
    const joins = new PostgresJoins({ connection, queues, enqueue: this.#enqueue, reports, recovery, upkeep })
    this.joins = this.#guarded<Joins>({
      enqueue: (calls) => {
        this.idle?.touched()
        return joins.enqueue(calls)
      },
      ...bound(joins, 'seal', 'look', 'ends', 'sweep'),
    })
    const steps = new PostgresSteps(connection, queues)
    this.steps = this.#guarded(bound(steps, 'keep', 'read', 'forget', 'signal', 'sweep'))
    this.deaths = this.#guarded(postgresDeaths(connection, queues))
    this.#wait = new PostgresWait(connection, this.#listener, queues, address.idlePollMs)
    this.idle = this.#wait.idle
    this.#runner = new StepRunner(address, connection.schema, makeClient)
    const parts = { connection, queues, runner: this.#runner, enqueue: this.#enqueue, wait: this.#wait }
    this.schedules = this.#guarded(postgresSchedules(parts))
    this.records = this.#guarded(
      postgresRecords({ ...parts, recovery, settle: this.#settle, reshards: new PostgresReshard(connection, queues) }),
    )
    this.workers = this.#guarded(postgresRegistry({ ...parts, recovery, idlePollMs: address.idlePollMs ?? 0 }))
    this.history = this.#guarded<History>({
      add: (entries) => this.#runner.run('history', (now) => addHistory(entries, now)),
      read: (of, span) => this.#runner.run(undefined, (now) => readHistory(of, span, now)),
    })
    const doctor = new PostgresDoctor(connection, this.#listener, postgresFunctions)
    const repairing = this.#guarded({
      check: (queue?: string) => checkPostgres(connection, queue),
      repair: (queue?: string) => repairPostgres(connection, queue),
    })
    // An examination makes no schema.
    this.health = { ...repairing, examine: () => doctor.examine() }
    this.migration = {
      migrate: async (roles) => {
        this.#refuseClosed()
        return migrateSchema(connection, connection.schema, postgresFunctions, roles)
      },
      sql: (roles) => migrationText(connection.schema, postgresFunctions, roles),
    }
    // Each watch adds a listener, and the number of watches has no limit.
    setMaxListeners(0, this.#closing.signal)
    const guard = { refuseClosed: () => this.#refuseClosed(), ready: this.#ready }
    this.live = postgresLive({ ...parts, ...guard }, this.#closing.signal)
  }

  open(queues: readonly QueueSettings[], how = { follows: false }): Promise<StoredQueue[]> {
    return this.#underWay(() => this.#queues.open(queues, how))
  }

  enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    this.idle?.touched()
    return this.#underWay(() => this.#enqueue.enqueue(calls))
  }

  async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    const claimed = await this.#underWay(() => this.#claim.claim(from, by))
    if (claimed.claims.length > 0) this.idle?.touched()
    return claimed
  }

  settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    this.idle?.touched()
    return this.#underWay(() => this.#settle.settle(items))
  }

  extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]> {
    this.idle?.touched()
    return this.#underWay(() => extendItems(this.#connection, this.#queues, items))
  }

  depth(queues: readonly string[]): Promise<{ readonly now: number; readonly depths: QueueDepth[] }> {
    return this.#underWay(() => depthsOf(this.#connection, this.#queues, queues))
  }

  wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    return this.#underWay(() => this.#wait.forQueues(queues, forMs, signal))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#closing.abort()
    this.#wait.close()
    // A caller whose call was rejected must not find later that it was done.
    if (this.#calls.size > 0) {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, closeMs)
      })
      await Promise.race([Promise.allSettled(this.#calls.keys()), late])
      clearTimeout(timer)
    }
    // Nobody hears of a failure once the store is closed.
    for (const reject of this.#calls.values()) reject(new ClosedError('the Postgres store'))
    if (this.#calls.size > 0) await breath()
    await Promise.all([this.#connection.close(), this.#listener.close(), this.#runner.close()])
  }

  /** The facet, each of whose calls is under way until it is answered. */
  #guarded<Facet extends object>(facet: Facet): Facet {
    return Object.fromEntries(
      Object.entries(facet).map(([name, call]) => [
        name,
        typeof call === 'function'
          ? (...args: unknown[]) => this.#underWay(() => call(...args))
          : this.#guarded(call as object),
      ]),
    ) as Facet
  }

  async #underWay<T>(call: () => Promise<T>): Promise<T> {
    this.#refuseClosed()
    const answer = this.#ready().then(call)
    const closed = new Promise<never>((_, reject) => {
      this.#calls.set(answer, reject)
    })
    try {
      return await Promise.race([answer, closed])
    } finally {
      this.#calls.delete(answer)
    }
  }

  #refuseClosed(): void {
    if (this.#isClosed) throw new ClosedError('the Postgres store')
  }
}

interface LiveParts {
  readonly connection: PostgresConnection
  readonly runner: StepRunner
  readonly wait: PostgresWait
  refuseClosed(): void
  /** Resolves when the schema is there. */
  ready(): Promise<void>
}

/** Live messages: they are rows, and who watches is told of new ones. `closing` aborts when the store is closed. */
function postgresLive(
  { connection, runner, wait, refuseClosed, ready }: LiveParts,
  closing: AbortSignal,
): LiveMessages {
  const run: StepRunner['run'] = async (changes, of) => {
    refuseClosed()
    await ready()
    return runner.run(changes, of)
  }
  return liveMessages(
    {
      refuseClosed,
      isWatched: (queue) => run(undefined, (now) => isWatched(queue, now)),
      async publishLive(queue, message) {
        const isRead = await run('live', (now) => publishLive(queue, message, now))
        if (isRead) connection.call(tellAll, [topics.live]).catch(() => {})
        return isRead
      },
      readLive: (queue, after) => run(undefined, () => readLive(queue, after)),
      watchLive: (queue, watcher, forMs) => run('live', (now) => watchLive(queue, watcher, forMs, now)),
      // Also while the store is being closed.
      unwatchLive: (queue, watcher) => runner.run('live', () => unwatchLive(queue, watcher)),
      async listen(over) {
        await ready()
        return wait.ear([topics.live], over)
      },
    },
    closing,
  )
}
