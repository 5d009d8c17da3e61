/**
 * The found ends: jobs and claims that the store ended because a lease or a time was over, which the process that
 * finds them reports. Of jobs that crashed once too often it calls their task's `onExhausted`.
 */

import { ProcessDiedError } from '../core/errors.js'
import type { BuryReason } from '../core/job/job.js'
import { ownMeta } from '../core/job/job-origin.js'
import type { Registry } from '../core/registry.js'
import type { Surroundings } from '../core/surroundings.js'
import type { AnyTask } from '../core/task/any-task.js'
import { checkedInputs, decodedClaim } from '../runtime/run/claim-decoder.js'
import { runningJob } from '../runtime/run/execution.js'
import { emitFound, type FoundByClaim } from '../runtime/run/run-events.js'
import type { Buried, Claim } from '../stores/contract/claim.js'
import type { Records } from '../stores/contract/job-records.js'
import { callExhausted } from './end-hooks.js'

type HookedTask = AnyTask & { readonly onExhausted: NonNullable<AnyTask['onExhausted']> }

export class FoundEnds {
  readonly #surroundings: Surroundings
  readonly #registry: Registry
  readonly #records: () => Promise<Records | undefined>

  /** `records`: opens the store, once. */
  constructor(surroundings: Surroundings, registry: Registry, records: () => Promise<Records | undefined>) {
    this.#surroundings = surroundings
    this.#registry = registry
    this.#records = records
  }

  /**
   * Emits the events. A burial stands in one answer of the store: if that is lost, or this process ends first or does
   * not know the task, nobody calls its `onExhausted`. `died`: how the worker of the jobs ended, if that is known.
   */
  tell(found: FoundByClaim, died?: ProcessDiedError): void {
    const { events } = this.#surroundings
    emitFound(events, found, died)
    for (const buried of found.buried) {
      if (buried.reason !== ('crashed' satisfies BuryReason)) continue
      const task = this.#registry.orderedTask(buried.queue) ?? this.#registry.find(buried.task)
      if (task?.onExhausted !== undefined)
        void callExhausted(events, task, () => this.#exhaust(task as HookedTask, buried, died ?? goneWorker()))
    }
  }

  async #exhaust(
    task: HookedTask,
    { queue, id, fence, payload, ...ref }: Buried,
    error: ProcessDiedError,
  ): Promise<void> {
    const kept = payload === undefined ? await (await this.#records())?.morgue.get(queue, id) : { payloads: [payload] }
    // Somebody has revived or removed it.
    if (kept === undefined) return
    const claim = { queue, id, ...ref, ...kept, fence } as Claim
    const decoded = decodedClaim(claim, this.#surroundings.packing)
    const [meta] = decoded.metas
    const [input] = task.input === undefined ? decoded.inputs : await checkedInputs(task.input, decoded)
    if (task.kind === 'ordered')
      await task.onExhausted([{ id, input, score: payload!.score, meta: ownMeta(meta!), error }])
    else await task.onExhausted({ job: runningJob(claim, task, meta!), input, error })
  }
}

function goneWorker(): ProcessDiedError {
  return new ProcessDiedError('the worker that ran the job', { code: null, signal: null })
}
