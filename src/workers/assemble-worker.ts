/** The assembly of a worker: its settings and its parts, put together on a connection. */

import type { FormatError } from '../core/messages/error-text.js'
import { packageVersion } from '../core/package-files.js'
import { timerMs } from '../core/platform/timer.js'
import type { Queue } from '../core/queue/queue.js'
import type { Registry } from '../core/registry.js'
import type { Surroundings } from '../core/surroundings.js'
import type { Middleware } from '../core/task/middleware.js'
import { defined } from '../core/values/defined.js'
import type { IdleWaiter } from '../runtime/idle-waiter.js'
import type { LeaseKeeper } from '../runtime/leases/lease-keeper.js'
import type { LivePublisher } from '../runtime/live-publisher.js'
import type { ProcessIdentity } from '../runtime/process/process-identity.js'
import { VitalSigns } from '../runtime/process/vital-signs.js'
import { Repeating } from '../runtime/repeating.js'
import type { ChildClient } from '../runtime/run/child-calls.js'
import { ClaimDecoder } from '../runtime/run/claim-decoder.js'
import { Executor } from '../runtime/run/executor.js'
import { JobUpdates } from '../runtime/run/job-updates.js'
import { endedRunOf, Settler, settlementRules } from '../runtime/run/settlement.js'
import { processSoloGate } from '../runtime/solo-gate.js'
import type { Selector } from '../selectors/selector.js'
import type { StoredQueue } from '../stores/contract/queue-settings.js'
import type { Store } from '../stores/contract/store.js'
import type { WorkerRecord, WorkerSignal } from '../stores/contract/worker-registry.js'
import { ClaimLoop } from './claims/claim-loop.js'
import { DepartureSizes, Prefetch } from './claims/claim-plan.js'
import { ForeignJobs } from './claims/foreign-jobs.js'
import { InFlight } from './claims/in-flight.js'
import { GrouplessJobs, LimitedQueues, limitsMs } from './claims/limited-queues.js'
import { Punctuality } from './claims/punctuality.js'
import { QueuePicker } from './claims/queue-picker.js'
import type { ShardsOf } from './claims/shard-owners.js'
import { ShardPicker } from './claims/shard-picker.js'
import { DeathLooks, DeathReports } from './death-reports.js'
import { EndHooks } from './end-hooks.js'
import { FoundEnds } from './found-ends.js'
import { Heartbeat, registryBeatMs } from './heartbeat.js'
import { Adoption } from './isolated/adoption.js'
import { ProcessPool, type ProcessSource } from './isolated/process-pool.js'
import { JoinSweeps } from './join-sweeps.js'
import { Recoverer } from './recoverer.js'
import { ScheduleLoop } from './schedule-loop.js'
import type { Slots } from './slots.js'

/** The connection that the workers of one mill share. */
export interface Connection {
  readonly store: Store
  /** The queues of the mill as the store has them, in the order of their declaration. */
  readonly stored: readonly StoredQueue[]
  readonly keeper: LeaseKeeper
  readonly waiter: IdleWaiter
  readonly publisher: LivePublisher
}

/** The parts that run a mill's jobs, in any process. */
export interface RunParts extends Surroundings {
  readonly registry: Registry
  readonly middleware: readonly Middleware[]
  /** Enqueues jobs for handlers. */
  readonly children: ChildClient
  readonly formatError: FormatError
  readonly maxPayloadBytes: number
}

export interface WorkerParts extends RunParts {
  readonly connect: () => Promise<Connection>
  /**
   * Whether to wait for a store that is away when the worker starts. A server may be back soon; a file that cannot be
   * opened will not.
   */
  readonly waitsForStore: boolean
  /** Called before the first claim; a worker for which it rejects does not start. `isOver`: whether it was stopped. */
  readonly onStart: (isOver: () => boolean) => Promise<void>
  /** Writes the declared schedules again. */
  readonly restoreSchedules: () => Promise<void>
  /** Called once the worker has ended, for whatever reason. */
  readonly onEnd: (error: unknown) => Promise<void>
  /** Called last of all: the worker has ended, and nobody need stop it again. */
  readonly ended: () => void
  /** The start settings for the processes of isolated jobs; undefined if there are none. */
  readonly processes: ProcessSource | undefined
}

/** The settings of a worker, with every default filled in. */
export interface WorkerSettings {
  readonly queues: readonly Queue[]
  readonly concurrency: number
  readonly selector: Selector
  /** `'custom'`: a function of the user's. */
  readonly selectorName: string
  /** Absent: the live workers share the shards among themselves. */
  readonly shardsOf: ShardsOf | undefined
  readonly affinity: string
  readonly graceMs: number
  readonly maxBlockMs: number
  readonly maxJobs: number | undefined
  readonly maxRssBytes: number | undefined
  /** A supervisor starts another process when this one asks to be replaced, so it need not go on with lost slots. */
  readonly isSupervised: boolean
}

/** The worker itself, as its parts see it. */
interface Self {
  readonly id: string
  readonly identity: ProcessIdentity
  readonly slots: Slots
  /** Called when the store took a heartbeat, with the time on the monotonic clock. */
  readonly beaten: (at: number) => void
  readonly state: () => NonNullable<WorkerRecord['state']>
  /** Called with an operator's signal, again with every beat. */
  readonly signalled: (signal: WorkerSignal) => void
}

export interface WorkerAssembly extends Connection {
  readonly settler: Settler
  readonly inFlight: InFlight
  readonly claimLoop: ClaimLoop
  readonly heartbeat: Repeating
  /** Its jobs no longer have watchers noticed. */
  readonly leavePublisher: () => void
  readonly signs: VitalSigns
  /** Refreshes the shards of ordered queues. */
  readonly sharing: Repeating | undefined
  /** Refreshes the rules of throttles; undefined if no queue has one. */
  readonly limits: Repeating | undefined
  readonly recoverer: Recoverer | undefined
  readonly adoption: Adoption | undefined
  /** Ticks schedules, while it leads. */
  readonly schedules: ScheduleLoop | undefined
  /** Ends joins that wait for too long; undefined if the store has none. */
  readonly joins: JoinSweeps | undefined
  /** Reports deaths; undefined if no task has `onDead`. */
  readonly deaths: DeathLooks | undefined
}

/** Added to the time for which a blocked process may hold claims; more than two missed beats. */
const registryMarginMs = 15_000
/** How often the worker looks up the number of shards and the other workers of their queues. */
const sharingMs = 10_000

/** Starts nothing yet. */
export function assembleWorker(
  connection: Connection,
  parts: WorkerParts,
  settings: WorkerSettings,
  self: Self,
): WorkerAssembly {
  const { store, stored, keeper, waiter } = connection
  const { registry, packing, clock, random, events, newId, maxPayloadBytes, processes, children } = parts
  const { queues, selector, shardsOf, concurrency, affinity, maxBlockMs } = settings
  const { id: worker, identity, slots } = self
  const { traits, workers, records } = store
  const names = queues.map(({ name }) => name)
  const prefetch = new Prefetch(concurrency, traits.metered ? traits.maxClaim : undefined)
  const mono = () => clock.mono()
  const surroundings = { worker, events, clock, random, packing, newId }
  const settler = new Settler(surroundings, store)
  const limited = new LimitedQueues(stored)
  const punctuality = new Punctuality(limited, registry)
  const sizes = new DepartureSizes(registry, limited, prefetch)
  const ends = new FoundEnds(surroundings, registry, async () => records)
  const shared = { ...surroundings, registry, slots, ends, settler, prefetch, limited, punctuality, sizes, mono }
  const maxPayload = Math.min(maxPayloadBytes, traits.maxPayloadBytes)
  const rules = settlementRules(surroundings, parts, traits, {
    endedRun: ({ task, begunAt, handlerAt }) =>
      task.kind === 'plain' && task.isolation !== undefined
        ? endedRunOf(handlerAt, mono())
        : endedRunOf(begunAt, mono(), identity),
  })
  const notes = new JobUpdates(surroundings, store, maxPayload)
  const foreign = new ForeignJobs(surroundings, store, limited, (queue, forMs) => picker.leave(queue, forMs))
  const inFlight = new InFlight({
    ...{ ...shared, keeper, soloGate: processSoloGate, rules, maxBlockMs, after: afterMs },
    deferred: (queue) => picker.passOver(queue),
    ...{
      notes,
      hooks: new EndHooks(parts.middleware, events),
      groupless: new GrouplessJobs(surroundings, registry, limited),
    },
    decoder: new ClaimDecoder(registry, packing, notes, rules.now, children, (claim, reason) =>
      foreign.putAside(claim, reason),
    ),
    executor: (report) => new Executor(surroundings, parts.middleware, report),
    processes: processes && ((report) => new ProcessPool(surroundings, registry, store, affinity, processes, report)),
  })
  const adoption =
    processes &&
    workers &&
    records &&
    new Adoption({ ...shared, affinity, identity, queues: names, workers, records, rules })
  const shards = new ShardPicker(surroundings, store, queues, stored, shardsOf)
  const picker = new QueuePicker(surroundings, queues, selector, limited, shards)
  const claimLoop = new ClaimLoop({
    ...{ ...shared, store, queues, shards, inFlight, picker, waiter, soloGate: processSoloGate },
    held: () => [...inFlight.held, ...(adoption?.held ?? [])],
    needsHeads: selector.needsHeads ?? false,
    // A process with an abandoned handler is about to be replaced if it has a supervisor.
    mayBeAlone: () => !(settings.isSupervised && slots.retired > 0),
    mayTake: () => (settings.maxJobs ?? Number.POSITIVE_INFINITY) - inFlight.taken,
  })
  const leavePublisher = connection.publisher.holding(() =>
    [...inFlight.held, ...(adoption?.held ?? [])].map(({ queue }) => queue),
  )
  const version = packageVersion()
  const signs = new VitalSigns()
  const taskNames = registry.runnableNames
  const heartbeat = new Heartbeat({
    ...{ store, signs, mono, beaten: self.beaten, state: self.state, signalled: self.signalled },
    worker: {
      ...{ id: worker, ...identity, queues: names, concurrency, startedAt: clock.now() },
      ...{
        selector: settings.selectorName,
        tasks: registry.runnable.length,
        ...defined({ taskNames }),
        ...(version && { version }),
      },
    },
    running: () => slots.used,
    // The recoverer finds only registered workers. The registry must not forget one that may still hold a claim.
    ttlMs: maxBlockMs + Math.max(...queues.map(({ leaseMs }) => leaseMs)) + registryMarginMs,
  })
  const deaths = DeathReports.of(parts, store, names)
  const failed = (call: string, retryMs: number) => (error: unknown) =>
    events.emit('store.failed', { call, error, retryMs })
  const found = (queues: readonly string[]) => claimLoop.look(queues)
  const unlessAsleep = (work: () => Promise<void>) => async () => (store.idle?.isAsleep() ? undefined : work())
  return {
    ...{ ...connection, settler, inFlight, claimLoop, signs, leavePublisher },
    heartbeat: new Repeating(registryBeatMs, () => heartbeat.beat(), failed('workers.beat', registryBeatMs)),
    sharing: shards.areServed
      ? new Repeating(
          sharingMs,
          unlessAsleep(() => shards.refresh()),
          failed('workers.list', sharingMs),
        )
      : undefined,
    limits:
      records && names.some((name) => limited.isThrottled(name))
        ? new Repeating(
            limitsMs,
            unlessAsleep(async () => limited.know(await records.queues())),
            failed('records.queues', limitsMs),
          )
        : undefined,
    recoverer: workers && new Recoverer(surroundings, workers, store, identity, ends, found),
    adoption,
    joins: store.joins === undefined && store.steps === undefined ? undefined : new JoinSweeps(surroundings, store),
    deaths: deaths && new DeathLooks(parts, deaths, store),
    schedules: store.schedules && new ScheduleLoop(surroundings, store.schedules, parts.restoreSchedules),
  }
}

/** Returns the function that cancels the call. */
function afterMs(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, timerMs(Math.ceil(ms)))
  return () => clearTimeout(timer)
}
