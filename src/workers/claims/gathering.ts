/**
 * The gathering of a worker: batches that are not full and wait a moment for more jobs of their task. Each counts as
 * running, so that it has a slot when it begins.
 */

import type { AnyBatchTask } from '../../core/task/task.js'
import { JobsExecution } from '../../runtime/run/batch-execution.js'
import type { Execution } from '../../runtime/run/execution.js'

interface GatheringParts {
  /** Calls `work` after `ms`, unless the returned function is called before. */
  readonly after: (ms: number, work: () => void) => () => void
  /** Called with a batch that has waited long enough. */
  readonly begin: (execution: JobsExecution) => void
}

interface WaitingBatch {
  readonly batch: JobsExecution
  readonly cancel: () => void
}

export class Gathering {
  readonly #parts: GatheringParts
  readonly #waiting = new Map<string, Map<AnyBatchTask, WaitingBatch>>()
  /** The number of waiting batches. Kept as a count: every claim and every end of a job asks for it. */
  #size = 0

  constructor(parts: GatheringParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#size
  }

  get waiting(): readonly JobsExecution[] {
    return [...this.#waiting.values()].flatMap((batches) => [...batches.values()].map(({ batch }) => batch))
  }

  /** The queues whose jobs would join a batch. */
  get queues(): readonly string[] {
    return [...this.#waiting.keys()]
  }

  /** How many jobs of this queue would join a batch; no more than fit each, whatever their tasks. */
  lacking(queue: string): number {
    const batches = [...(this.#waiting.get(queue)?.values() ?? [])]
    return batches.length === 0 ? 0 : Math.min(...batches.map(({ batch }) => batch.mostJobs - batch.leased.length))
  }

  /** Keeps the executions that are to wait; returns the others, which begin now. */
  add(queue: string, executions: readonly Execution[]): readonly Execution[] {
    if (!executions.some(mayWait)) return executions
    return executions.flatMap((execution) => (mayWait(execution) ? this.#joined(queue, execution) : [execution]))
  }

  /** Begins all waiting batches as they are. */
  beginAll(): void {
    for (const batch of this.rest()) this.#parts.begin(batch)
  }

  /** Removes and returns all that waits. */
  rest(): readonly JobsExecution[] {
    const { waiting } = this
    for (const batches of this.#waiting.values()) for (const { cancel } of batches.values()) cancel()
    this.#waiting.clear()
    this.#size = 0
    return waiting
  }

  #joined(queue: string, execution: JobsExecution): Execution[] {
    const { task } = execution
    const before = this.#take(queue, task)
    if (before === undefined) return this.#begun(queue, execution)
    before.batch.join(execution)
    if (before.batch.leased.length < before.batch.mostJobs) {
      this.#keep(queue, before)
      return []
    }
    before.cancel()
    return [before.batch, ...(execution.leased.length === 0 ? [] : this.#begun(queue, execution))]
  }

  /** Starts a new batch; one that is already full begins at once. */
  #begun(queue: string, batch: JobsExecution): Execution[] {
    const { task } = batch
    if (batch.leased.length === batch.mostJobs) return [batch]
    const due = () => {
      this.#take(queue, task)
      this.#parts.begin(batch)
    }
    this.#keep(queue, { batch, cancel: this.#parts.after(task.batch.waitMs, due) })
    return []
  }

  #keep(queue: string, waiting: WaitingBatch): void {
    const batches = this.#waiting.get(queue) ?? new Map<AnyBatchTask, WaitingBatch>()
    this.#waiting.set(queue, batches.set(waiting.batch.task, waiting))
    this.#size += 1
  }

  #take(queue: string, task: AnyBatchTask): WaitingBatch | undefined {
    const batches = this.#waiting.get(queue)
    const found = batches?.get(task)
    if (batches?.delete(task)) this.#size -= 1
    if (batches?.size === 0) this.#waiting.delete(queue)
    return found
  }
}

function mayWait(execution: Execution): execution is JobsExecution {
  return execution instanceof JobsExecution && execution.task.batch.waitMs > 0
}
