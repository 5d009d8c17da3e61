/**
 * The records of a test context: a worker's executions that record the handler's calls instead of sending them to a
 * store.
 */

import { WorkerStoppedError } from '../core/errors.js'
import { Events } from '../core/events.js'
import type { Progress } from '../core/job.js'
import { checkFields, type FieldWriter, type JobFields } from '../core/job-fields.js'
import { Packing } from '../core/packing/packing.js'
import { systemRandom } from '../core/platform/clock.js'
import type { AnyOrderedTask } from '../core/task/ordered-task.js'
import type { AnyBatchTask, AnySingleTask } from '../core/task/task.js'
import { jsonCodec } from '../core/values/codec.js'
import type { DecodedClaim } from '../runtime/run/batch-execution.js'
import { bindMethods } from '../runtime/run/bound-methods.js'
import { JobExecution } from '../runtime/run/job-execution.js'
import { JobUpdates } from '../runtime/run/job-updates.js'
import { JobsExecution } from '../runtime/run/jobs-execution.js'
import { OrderedExecution } from '../runtime/run/ordered-execution.js'
import type { Claim } from '../stores/contract/claim.js'
import { memoryTraits } from '../stores/memory/memory-traits.js'
import { ChildRecords } from './child-records.js'

/** Sends nothing: everything is recorded before. */
const unsent = new JobUpdates({
  store: { traits: memoryTraits, extend: async (items) => items.map(() => 'ok' as const) },
  packing: new Packing(jsonCodec, undefined, undefined),
  maxCheckpointBytes: memoryTraits.maxPayloadBytes,
  events: new Events(),
  random: systemRandom,
})

const stopped = () => new WorkerStoppedError('the test has aborted this attempt.')

export class JobRecords extends JobExecution {
  readonly progressed: Progress[] = []
  readonly logged: string[] = []
  readonly checkpoints: unknown[] = []
  fieldsWritten: JobFields = {}
  readonly enqueued: ChildRecords['items']
  readonly #lastCheckpoint: unknown

  static {
    bindMethods(JobRecords.prototype, ['progress', 'log', 'checkpoint', 'abort'])
  }

  constructor(claim: Claim, task: AnySingleTask, meta: Readonly<Record<string, unknown>>, lastCheckpoint: unknown) {
    const children = new ChildRecords()
    super(claim, task, undefined, meta, unsent, children)
    this.enqueued = children.items
    this.#lastCheckpoint = lastCheckpoint
  }

  override progress(fraction: number, note?: string): void {
    super.progress(fraction, note)
    this.progressed.push(this.lastProgress!)
  }

  override log(text: string): void {
    this.logged.push(String(text).toWellFormed())
  }

  /** Rejects as in a worker: after an abort, for a value that is too large, or one that cannot be encoded. */
  override async checkpoint(value: unknown): Promise<void> {
    await super.checkpoint(value)
    this.checkpoints.push(value)
  }

  override abort(reason: Error = stopped()): void {
    super.abort(reason)
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
    }
  }

  override get lastCheckpoint(): unknown {
    return this.#lastCheckpoint
  }
}

export class OrderedRecords extends OrderedExecution {
  readonly progressed: Progress[] = []
  readonly enqueued: ChildRecords['items']

  static {
    bindMethods(OrderedRecords.prototype, ['progress', 'abort'])
  }

  constructor(task: AnyOrderedTask, claims: readonly DecodedClaim[]) {
    const children = new ChildRecords()
    super(task, claims, children)
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

export class JobsRecords extends JobsExecution {
  readonly progressed: Progress[] = []
  readonly enqueued: ChildRecords['items']

  static {
    bindMethods(JobsRecords.prototype, ['progress', 'abort'])
  }

  constructor(task: AnyBatchTask, claims: readonly DecodedClaim[]) {
    const children = new ChildRecords()
    super(task, claims, children)
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

  /** The errors that the handler has given for jobs, the latest of each, by index. */
  get failed(): ReadonlyMap<number, unknown> {
    return new Map(this.leased.flatMap(({ failure }, i) => (failure === undefined ? [] : [[i, failure.error]])))
  }
}
