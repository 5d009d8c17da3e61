/**
 * The records of a test context: a worker's executions that record the handler's calls instead of sending them to a
 * store.
 */

import { createHash, type Hash } from 'node:crypto'
import { builtFlow } from '../client/enqueue/job-flow.js'
import { InvalidArgumentError, WorkerStoppedError } from '../core/errors.js'
import { Events } from '../core/events.js'
import type { JobHandle, Progress, RunningJob } from '../core/job/job.js'
import { checkFields, type FieldWriter, type JobFields } from '../core/job/job-fields.js'
import type { JobOrigin } from '../core/job/job-origin.js'
import { Packing } from '../core/packing/packing.js'
import { systemClock, systemRandom } from '../core/platform/clock.js'
import type { Flow, FlowCall, FlowHandles } from '../core/task/flow.js'
import type { EnqueueItem } from '../core/task/middleware.js'
import { validated } from '../core/task/schema.js'
import type { AnySignal } from '../core/task/signal.js'
import type { AnySingleTask } from '../core/task/task.js'
import { jsonCodec, type Payload } from '../core/values/codec.js'
import { type Duration, durationMs } from '../core/values/duration.js'
import { BatchExecution, OrderedExecution } from '../runtime/run/batch-execution.js'
import type { ChildClient } from '../runtime/run/child-calls.js'
import { bindMethods, type Execution, JobExecution } from '../runtime/run/execution.js'
import { JobUpdates } from '../runtime/run/job-updates.js'
import type { Claim } from '../stores/contract/claim.js'
import { memoryTraits } from '../stores/memory/memory-traits.js'
import type { ChildRecord, Observed } from './observed.js'

/** Sends nothing: everything is recorded before. */
const unsent = new JobUpdates(
  {
    events: new Events(),
    clock: systemClock,
    random: systemRandom,
    packing: new Packing(jsonCodec, undefined, undefined),
  },
  {
    traits: memoryTraits,
    extend: async (items) => items.map(() => 'ok' as const),
    steps: {
      keep: async () => 'ok',
      read: async () => ({ now: 0, steps: [] }),
      forget: async () => false,
      signal: async () => 'gone',
      sweep: async () => ({ woken: 0, more: false }),
    },
  },
  memoryTraits.maxPayloadBytes,
)

const stopped = () => new WorkerStoppedError('the test has aborted this attempt.')

/** An execution of any kind, with the records that every test context has. */
// biome-ignore lint/suspicious/noExplicitAny: TypeScript asks for it in a mixin
function recording<Kind extends abstract new (...args: any[]) => Execution>(OfKind: Kind) {
  abstract class Recording extends OfKind {
    readonly progressed: Progress[] = []
    readonly enqueued: readonly ChildRecord[]

    static {
      bindMethods(Recording.prototype, ['progress', 'abort'])
    }

    /** Takes the arguments of an execution, up to the client. */
    // biome-ignore lint/suspicious/noExplicitAny: as above
    constructor(...args: any[]) {
      const children = new ChildRecords()
      super(...args, children)
      this.enqueued = children.items
      this.begunAt = 0
    }

    override progress(fraction: number, note?: string): void {
      super.progress(fraction, note)
      this.progressed.push(this.lastProgress!)
    }

    override abort(reason: Error = stopped()): void {
      super.abort(reason)
    }
  }
  // biome-ignore lint/suspicious/noExplicitAny: as above
  return Recording as unknown as Kind & (new (...args: any[]) => Observed)
}

interface GivenToHandler {
  readonly origin: JobOrigin
  readonly lastCheckpoint?: unknown
  readonly signals?: Readonly<Record<string, unknown>> | undefined
}

/** @internal */
export class JobRecords extends recording(JobExecution) {
  readonly logged: string[] = []
  readonly checkpoints: unknown[] = []
  fieldsWritten: JobFields = {}
  readonly #given: GivenToHandler
  #described: RunningJob | undefined

  static {
    bindMethods(JobRecords.prototype, ['log', 'checkpoint', 'sleep', 'waitFor'])
  }

  constructor(claim: Claim, task: AnySingleTask, meta: Readonly<Record<string, unknown>>, given: GivenToHandler) {
    super(claim, task, undefined, meta, unsent)
    this.#given = given
  }

  override get job(): RunningJob {
    this.#described ??= { ...super.job, ...this.#given.origin }
    return this.#described
  }

  /** Over at once. */
  override async sleep(_name: string, time: Duration): Promise<void> {
    durationMs(time, 'ctx.sleep(name, time)')
  }

  /** Has come, or is over in vain. */
  override async waitFor({ name, data }: AnySignal): Promise<never> {
    const { signals = {} } = this.#given
    const sent = signals[name]
    const isSent = Object.hasOwn(signals, name) && data !== undefined
    return (isSent ? await validated(data, sent, `the data of signal '${name}'`) : sent) as never
  }

  override log(text: string): void {
    this.logged.push(String(text).toWellFormed())
  }

  /** Rejects as in a worker: after an abort, for a value that is too large, or one that cannot be encoded. */
  override async checkpoint(value: unknown): Promise<void> {
    await super.checkpoint(value)
    this.checkpoints.push(value)
  }

  override get fields(): FieldWriter {
    return {
      set: async (changes) => {
        if (this.signal.aborted) throw this.signal.reason
        checkFields(changes)
        const left = Object.entries({ ...this.fieldsWritten, ...changes }).filter(([, value]) => value !== null)
        this.fieldsWritten = Object.fromEntries(left) as JobFields
        return true
      },
      get: async () => {
        if (this.signal.aborted) throw this.signal.reason
        return this.fieldsWritten
      },
    }
  }

  override get lastCheckpoint(): unknown {
    return this.#given.lastCheckpoint
  }
}

/** @internal */
export class OrderedRecords extends recording(OrderedExecution) {
  /** The errors that the handler has given for ids, the latest of each. */
  get failed(): ReadonlyMap<string, unknown> {
    return new Map(
      this.leased.flatMap(({ claim, failure }) => (failure === undefined ? [] : [[claim.id, failure.error]])),
    )
  }

  /** How many payloads of each id are done. */
  get payloadsDone(): ReadonlyMap<string, number> {
    return new Map(this.leased.flatMap(({ claim, done }) => (done === 0 ? [] : [[claim.id, done]])))
  }
}

/** @internal */
export class BatchRecords extends recording(BatchExecution) {
  /** The errors that the handler has given for jobs, the latest of each, by index. */
  get failed(): ReadonlyMap<number, unknown> {
    return new Map(this.leased.flatMap(({ failure }, i) => (failure === undefined ? [] : [[i, failure.error]])))
  }
}

/** The jobs that a handler enqueues in a test context. They are checked and recorded, but not sent. */
class ChildRecords implements ChildClient {
  readonly items: ChildRecord[] = []

  encode(value: unknown): Payload {
    return jsonCodec.encode(value)
  }

  contentHash(): Hash {
    return createHash('sha256')
  }

  async enqueueItem(item: EnqueueItem): Promise<JobHandle> {
    const { task, input, options, child, asked = options } = item
    if (task.input !== undefined) await validated(task.input, input, `the input of a job of task '${task.name}'`)
    this.items.push({ task, input, options: asked })
    return unsentJob(options.queue ?? task.queue, String(options.id ?? child ?? `child-${this.items.length}`))
  }

  async flow<Returned>(build: (flow: Flow) => Returned, call: FlowCall): Promise<FlowHandles<Returned>> {
    const { flow, returned } = builtFlow(build, 'ctx.flow()')
    const { name } = call.named(flow.content)
    const items = flow.graph(() => name, { name, origin: call.origin }).map(({ item }) => item)
    const handles = await this.enqueueItems(items)
    return flow.handles(returned, new Map(items.map(({ graph }, i) => [graph.id, handles[i]!])))
  }

  enqueueIn(_tx: object, item: EnqueueItem): Promise<JobHandle> {
    return this.enqueueItem(item)
  }

  async completeIn(): Promise<void> {}

  get context(): never {
    throw new InvalidArgumentError('a test context is given what its handler finds in ctx.context: { context: { … } }.')
  }

  /** A test gives it with its context. */
  async joined(): Promise<never> {
    throw new InvalidArgumentError('a test context is given the members of its joins: { joined: { … } }.')
  }

  async enqueueItems(items: EnqueueItem[]): Promise<JobHandle[]> {
    return Promise.all(items.map((item) => this.enqueueItem(item)))
  }
}

function notRun(id: string): InvalidArgumentError {
  return new InvalidArgumentError(
    `job '${id}' was enqueued in a test context, which runs no jobs: it has no result. Use testMill() for handlers that wait for other jobs.`,
  )
}

/** The handle to a job that never runs. */
function unsentJob(queue: string, id: string): JobHandle {
  return {
    ...{ id, queue, outcome: 'added' },
    record: async () => undefined,
    status: async () => 'ready',
    explain: async () => [],
    cancel: async () => true,
    fields: {
      async set(changes) {
        checkFields(changes)
        return true
      },
      get: async () => ({}),
    },
    result: () => Promise.reject(notRun(id)),
    // biome-ignore lint/correctness/useYield: it has no events
    async *events() {
      throw notRun(id)
    },
  }
}
