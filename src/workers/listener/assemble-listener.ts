/** The assembly of a listener: its parts, put together on a connection. */

import { UnsupportedByStoreError } from '../../core/errors.js'
import type { FormatError } from '../../core/messages/error-text.js'
import type { Queue } from '../../core/queue/queue.js'
import { Registry } from '../../core/registry.js'
import type { Surroundings } from '../../core/surroundings.js'
import type { AnySingleTask } from '../../core/task/task.js'
import type { ProcessIdentity } from '../../runtime/process/process-identity.js'
import { VitalSigns } from '../../runtime/process/vital-signs.js'
import { Repeating } from '../../runtime/repeating.js'
import type { ChildClient } from '../../runtime/run/child-calls.js'
import { ClaimDecoder } from '../../runtime/run/claim-decoder.js'
import { JobUpdates } from '../../runtime/run/job-updates.js'
import { type SettlementRules, Settler, settlementRules } from '../../runtime/run/settlement.js'
import type { Records } from '../../stores/contract/job-records.js'
import type { WorkerRegistry, WorkerSignal } from '../../stores/contract/worker-registry.js'
import type { Connection } from '../assemble-worker.js'
import { LimitedQueues, limitsMs } from '../claims/limited-queues.js'
import { Punctuality } from '../claims/punctuality.js'
import type { FoundEnds } from '../found-ends.js'
import { Heartbeat, registryBeatMs } from '../heartbeat.js'
import { Recoverer } from '../recoverer.js'

export interface ListenerParts extends Surroundings {
  /** With a lease keeper of the listener's own. */
  readonly connect: () => Promise<Connection>
  readonly queue: Queue
  readonly concurrency: number
  /** The rules for `fail` and the time limit of a claim; it stands in for the tasks of all jobs. */
  readonly task: AnySingleTask
  /** The tasks and queues of its mill. */
  readonly registry: Registry
  readonly namespace: string
  /** Reads what became of the members of joins. */
  readonly children: Pick<ChildClient, 'joined'>
  readonly formatError: FormatError
  readonly maxPayloadBytes: number
  /** Called once it is closed. */
  readonly closed: () => void
}

/** The listener itself, as its parts see it. */
interface ListenerSelf {
  readonly id: string
  readonly identity: ProcessIdentity
  readonly ends: FoundEnds
  /** The number of claims held now. */
  readonly held: () => number
  /** Called with every heartbeat. */
  readonly beaten: () => Promise<void>
  /** Called if there may be work. */
  readonly look: () => void
  /** Called with an operator's signal, again with every beat. */
  readonly signalled: (signal: WorkerSignal) => void
}

export interface ListenerAssembly extends Connection {
  readonly workers: WorkerRegistry
  readonly records: Records
  readonly settler: Settler
  readonly notes: JobUpdates
  readonly decoder: ClaimDecoder
  readonly rules: SettlementRules
  readonly punctuality: Punctuality
  readonly heartbeat: Repeating
  /** Looks whether the rules of its throttle have changed; undefined if it has none. */
  readonly limits: Repeating | undefined
  /** Its jobs no longer have watchers noticed. */
  readonly leavePublisher: () => void
  readonly signs: VitalSigns
  readonly recoverer: Recoverer
}

/** How long the registry remembers a dead listener, beyond its lease. */
const registryMarginMs = 45_000

/** Starts nothing yet. Throws `UnsupportedByStoreError` if the store keeps no registry of workers. */
export function assembleListener(connection: Connection, parts: ListenerParts, self: ListenerSelf): ListenerAssembly {
  const { packing, clock, events, maxPayloadBytes, queue, concurrency, task } = parts
  const surroundings = { ...parts, worker: self.id }
  const { store } = connection
  const { traits, workers, records } = store
  if (workers === undefined || records === undefined)
    throw new UnsupportedByStoreError(
      traits.name,
      'listeners, which need a registry of workers',
      "Use a worker, or another store, such as 'sqlite:.millrace/jobs.db'.",
    )
  const mono = () => clock.mono()
  const maxBytes = Math.min(maxPayloadBytes, traits.maxPayloadBytes)
  const notes = new JobUpdates(surroundings, store, maxBytes)
  const signs = new VitalSigns()
  const heartbeat = new Heartbeat({
    ...{ store, mono, signs, beaten: () => {}, state: () => 'running', signalled: self.signalled },
    worker: { id: self.id, ...self.identity, queues: [queue.name], concurrency, startedAt: clock.now() },
    running: self.held,
    ttlMs: queue.leaseMs + registryMarginMs,
  })
  const registry = new Registry([], [queue], task)
  const limited = new LimitedQueues(connection.stored)
  return {
    ...{ ...connection, workers, records, notes, signs },
    leavePublisher: connection.publisher.holding(() => (self.held() > 0 ? [queue.name] : [])),
    punctuality: new Punctuality(limited, registry),
    settler: new Settler(surroundings, store),
    decoder: new ClaimDecoder(registry, packing, notes, () => clock.now()),
    rules: settlementRules(surroundings, parts, traits, {
      resultDropped: (_, error) => {
        throw error
      },
    }),
    heartbeat: new Repeating(
      registryBeatMs,
      async () => {
        await heartbeat.beat()
        await self.beaten()
      },
      (error) => events.emit('store.failed', { call: 'workers.beat', error, retryMs: registryBeatMs }),
    ),
    limits: limited.isThrottled(queue.name)
      ? new Repeating(
          limitsMs,
          async () => {
            if (!store.idle?.isAsleep()) limited.know(await records.queues())
          },
          (error) => events.emit('store.failed', { call: 'records.queues', error, retryMs: limitsMs }),
        )
      : undefined,
    recoverer: new Recoverer(surroundings, workers, store, self.identity, self.ends, (queues) => {
      if (queues.includes(queue.name)) self.look()
    }),
  }
}
