/** The assembly of a worker: its parts, put together on a connection. */

import type { Events } from '../core/events.js'
import type { Packing } from '../core/packing/packing.js'
import type { Clock, Random } from '../core/platform/clock.js'
import { packageVersion } from '../core/platform/package-version.js'
import { timerMs } from '../core/platform/timer.js'
import type { Registry } from '../core/registry.js'
import type { Middleware } from '../core/task/middleware.js'
import { messageOf } from '../core/values/describe.js'
import type { FormatError } from '../core/values/error-text.js'
import { createIdSource } from '../core/values/ids.js'
import type { IdleWaiter } from '../runtime/idle-waiter.js'
import type { LeaseKeeper } from '../runtime/leases/lease-keeper.js'
import { Prefetch } from '../runtime/prefetch.js'
import type { ProcessIdentity } from '../runtime/process-identity.js'
import { Repeating } from '../runtime/repeating.js'
import type { ChildClient } from '../runtime/run/child-calls.js'
import { ClaimDecoder } from '../runtime/run/claim-decoder.js'
import { endedRunOf } from '../runtime/run/ended-run.js'
import { refOf } from '../runtime/run/execution.js'
import { Executor } from '../runtime/run/executor.js'
import { JobUpdates } from '../runtime/run/job-updates.js'
import type { SettlementRules } from '../runtime/run/settlement.js'
import { Settler } from '../runtime/run/settler.js'
import { processSoloGate } from '../runtime/solo-gate.js'
import type { StoredQueue } from '../stores/contract/queue-settings.js'
import type { Store } from '../stores/contract/store.js'
import type { WorkerOrder, WorkerRecord } from '../stores/contract/worker-registry.js'
import { ClaimLoop } from './claim-loop/claim-loop.js'
import { InFlight } from './claim-loop/in-flight.js'
import { LimitedQueues } from './claim-loop/limited-queues.js'
import { Punctuality } from './claim-loop/punctuality.js'
import { QueuePicker } from './claim-loop/queue-picker.js'
import { EndHooks } from './end-hooks.js'
import { ProcessPool, type ProcessSource } from './isolated/process-pool.js'
import { Adoption } from './recovery/adoption.js'
import { Heartbeat, registryBeatMs } from './recovery/heartbeat.js'
import { Recoverer } from './recovery/recoverer.js'
import { VitalSigns } from './recovery/vital-signs.js'
import { ScheduleLoop } from './schedules/schedule-loop.js'
import { ShardPicker } from './shards/shard-picker.js'
import type { Slots } from './slots.js'
import type { WorkerSettings } from './worker-settings.js'

/** What the workers of one mill share. */
export interface Connection {
  readonly store: Store
  /** The queues of the mill as the store has them, in the order in which they are declared. */
  readonly stored: readonly StoredQueue[]
  readonly keeper: LeaseKeeper
  readonly waiter: IdleWaiter
}

/** What jobs of a mill are run with, whoever runs them. */
export interface RunParts {
  readonly registry: Registry
  readonly packing: Packing
  readonly clock: Clock
  readonly random: Random
  readonly events: Events
  readonly middleware: readonly Middleware[]
  /** What enqueues for handlers. */
  readonly children: ChildClient
  readonly formatError: FormatError
  readonly maxPayloadBytes: number
}

export interface WorkerParts extends RunParts {
  readonly connect: () => Promise<Connection>
  /** A store that is away when the worker starts is waited for: it may be back soon, as a file that cannot be opened will not. */
  readonly waitsForStore: boolean
  /** Called before the first claim; a worker whose hook rejects does not start. */
  readonly onStart: () => Promise<void>
  /** Called when it has ended, however it did. */
  readonly onEnd: (error: unknown) => Promise<void>
  /** Hears, last of all, that it was stopped: nobody need stop it again. */
  readonly ended: () => void
  /** What the processes of isolated jobs are started with; undefined where there are none. */
  readonly processes: ProcessSource | undefined
}

/** The worker itself, as what it works with sees it. */
interface Self {
  readonly id: string
  readonly identity: ProcessIdentity
  readonly slots: Slots
  /** Hears when the store took a heartbeat of it, on the monotonic clock. */
  readonly beaten: (at: number) => void
  readonly state: () => NonNullable<WorkerRecord['state']>
  /** Hears what an operator wants of it, again with every beat. */
  readonly ordered: (order: WorkerOrder) => void
}

export interface WorkerAssembly extends Connection {
  readonly settler: Settler
  readonly inFlight: InFlight
  readonly claimLoop: ClaimLoop
  readonly heartbeat: Repeating
  readonly signs: VitalSigns
  /** Keeps up with the shards of ordered queues. */
  readonly sharing: Repeating | undefined
  /** Keeps up with the rules of throttles; undefined if no queue has one. */
  readonly limits: Repeating | undefined
  readonly recoverer: Recoverer | undefined
  readonly adoption: Adoption | undefined
  /** Ticks schedules, while it leads. */
  readonly schedules: ScheduleLoop | undefined
}

/** Beyond the time for which a process that is blocked may hold claims, and more than two beats missed besides. */
const registryMarginMs = 15_000
/** How often it is looked how many shards there are, and who else serves them. */
const sharingMs = 10_000
/** How often it is looked whether the rules of a throttle have changed: a shorter window lets handlers begin less late. */
const limitsMs = 5_000

/** Nothing of it has begun. */
export function assembleWorker(
  connection: Connection,
  parts: WorkerParts,
  settings: WorkerSettings,
  self: Self,
): WorkerAssembly {
  const { store, stored, keeper, waiter } = connection
  const { registry, packing, clock, random, events, formatError, maxPayloadBytes, processes, children } = parts
  const { queues, selector, shardsOf, concurrency, maxBlockMs } = settings
  const { id: worker, identity, slots } = self
  const { traits, workers, records } = store
  const names = queues.map(({ name }) => name)
  const prefetch = new Prefetch(concurrency, traits.metered ? traits.maxBatch : undefined)
  const mono = () => clock.mono()
  const settler = new Settler({ store, events, random, mono })
  const limited = new LimitedQueues(stored)
  const punctuality = new Punctuality(limited, registry)
  const shared = { worker, registry, slots, settler, prefetch, limited, punctuality, events, mono, random }
  const maxPayload = Math.min(maxPayloadBytes, traits.maxPayloadBytes)
  const rules: SettlementRules = {
    ...{ packing, formatError, maxResultBytes: maxPayload, maxDelayMs: traits.maxDelayMs, canHold: traits.throttled },
    now: () => clock.now(),
    endedRun: ({ task, begunAt, handlerAt }) =>
      task.kind === 'plain' && task.isolation !== undefined
        ? endedRunOf(handlerAt, mono())
        : endedRunOf(begunAt, mono(), identity),
    resultDropped: (claim, error) => events.emit('result.dropped', { ...refOf(claim), error: messageOf(error) }),
  }
  const notes = new JobUpdates({ store, packing, maxCheckpointBytes: maxPayload, events, random })
  const inFlight = new InFlight({
    ...{ ...shared, keeper, soloGate: processSoloGate, rules, maxBlockMs, after: afterMs },
    deferred: (queue) => picker.passOver(queue),
    ...{ notes, hooks: new EndHooks(parts.middleware, events) },
    decoder: new ClaimDecoder(registry, packing, notes, children),
    executor: (bench) => new Executor({ ...parts, mono, worker, bench }),
    processes: processes && ((bench) => new ProcessPool({ ...shared, store, source: processes, bench })),
  })
  const adoption =
    processes && workers && records && new Adoption({ ...shared, identity, queues: names, workers, records, rules })
  const shards = new ShardPicker({ ...shared, queues, store, stored, shardsOf })
  const picker = new QueuePicker({
    ...{ ...shared, selector, queues },
    placesOf: (queue) => shards.placesOf(queue),
    isForOthers: (queue) => shards.isForOthers(queue),
  })
  const claimLoop = new ClaimLoop({
    ...{ ...shared, store, queues, shards, inFlight, picker, waiter, soloGate: processSoloGate },
    held: () => [...inFlight.held, ...(adoption?.held ?? [])],
    needsHeads: selector.needsHeads ?? false,
    // One with an abandoned handler is about to be replaced, where somebody does that.
    mayBeAlone: () => !(settings.isSupervised && slots.retired > 0),
    mayTake: () => (settings.maxJobs ?? Number.POSITIVE_INFINITY) - inFlight.taken,
  })
  const version = packageVersion()
  const signs = new VitalSigns()
  const heartbeat = new Heartbeat({
    ...{ store, signs, mono, beaten: self.beaten, state: self.state, ordered: self.ordered },
    worker: {
      ...{ id: worker, ...identity, queues: names, concurrency, startedAt: clock.now() },
      ...{ selector: settings.selectorName, tasks: registry.runnable.length, ...(version && { version }) },
    },
    running: () => slots.used,
    // The recoverer finds only whom the registry knows: it must not forget who may still hold something.
    ttlMs: maxBlockMs + Math.max(...queues.map(({ leaseMs }) => leaseMs)) + registryMarginMs,
  })
  const failed = (call: string, retryMs: number) => (error: unknown) =>
    events.emit('store.failed', { call, error, retryMs })
  const found = (queues: readonly string[]) => claimLoop.look(queues)
  return {
    ...{ ...connection, settler, inFlight, claimLoop, signs },
    heartbeat: new Repeating(registryBeatMs, () => heartbeat.beat(), failed('workers.beat', registryBeatMs)),
    sharing: shards.areServed
      ? new Repeating(sharingMs, () => shards.refresh(), failed('workers.list', sharingMs))
      : undefined,
    limits:
      records && names.some((name) => limited.isThrottled(name))
        ? new Repeating(limitsMs, async () => limited.know(await records.queues()), failed('records.queues', limitsMs))
        : undefined,
    recoverer: workers && new Recoverer({ ...shared, workers, isRemote: traits.remote, identity, found }),
    adoption,
    schedules:
      store.schedules &&
      new ScheduleLoop({ ...shared, schedules: store.schedules, packing, newId: createIdSource(clock) }),
  }
}

/** Answers what takes it back. */
function afterMs(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, timerMs(Math.ceil(ms)))
  return () => clearTimeout(timer)
}
