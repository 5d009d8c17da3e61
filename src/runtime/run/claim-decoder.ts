/**
 * The claim decoder: finds the handlers of claims, decodes their contents, and puts the claims of batch tasks and
 * ordered queues into batches. Later the decoded inputs are checked against their schemas.
 */

import { CodecError } from '../../core/errors.js'
import { messageOf } from '../../core/messages/describe.js'
import type { Lack, Packing } from '../../core/packing/packing.js'
import type { Registry } from '../../core/registry.js'
import { type AnyTask, isBatchTask } from '../../core/task/any-task.js'
import { type Schema, validated } from '../../core/task/schema.js'
import type { AnyBatchTask } from '../../core/task/task.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { ScoredPayload } from '../../stores/contract/new-job.js'
import { BatchExecution, batchesOf, type DecodedClaim, OrderedExecution } from './batch-execution.js'
import type { ChildClient } from './child-calls.js'
import { type Execution, JobExecution, metaOf } from './execution.js'
import type { JobUpdates } from './job-updates.js'
import { unreadable } from './unreadable-claim.js'
import type { Verdict } from './verdict.js'

/** A batch that can still take claims of this answer. */
interface OpenBatch {
  readonly task: AnyBatchTask
  readonly claims: DecodedClaim[]
}

/** Called with a claim that cannot run here: it is released uncounted, or buried if it cannot be decoded. */
type Refused = (claim: Claim, verdict: Verdict) => void

/** Why a worker cannot run a job that another may run. */
export type ForeignReason = 'unknown-task' | Lack['reason']

/** For how many ms such a job is put aside. */
type PutAside = (claim: Claim, reason: ForeignReason) => number

/**
 * The longest for which a job waits that this worker cannot run but another version of it may: by then a rolling deploy
 * is over, or goes on.
 */
export const longestForeignMs = 30_000

export class ClaimDecoder {
  readonly #registry: Registry
  readonly #packing: Packing
  readonly #notes: JobUpdates
  readonly #now: () => number
  readonly #client: ChildClient | undefined
  readonly #putAside: PutAside

  /**
   * `now`: the wall clock. `client`: enqueues for handlers; absent if none is called. `putAside`: default the longest time.
   */
  constructor(
    registry: Registry,
    packing: Packing,
    notes: JobUpdates,
    now: () => number,
    client?: ChildClient,
    putAside: PutAside = () => longestForeignMs,
  ) {
    this.#putAside = putAside
    this.#registry = registry
    this.#packing = packing
    this.#notes = notes
    this.#now = now
    this.#client = client
  }

  /** The executions of one queue's claims, in their order. */
  of(claims: readonly Claim[], refused: Refused): Execution[] {
    if (claims[0]?.payloads !== undefined) return this.#batches(claims, refused)
    const executions: (JobExecution | OpenBatch)[] = []
    let open: Map<AnyBatchTask, OpenBatch> | undefined
    for (const claim of claims) {
      const task = this.#registry.find(claim.task)
      if (isBatchTask(task) && task.run !== undefined) {
        open ??= new Map()
        const batch = this.#joined(claim, open.get(task), task, refused)
        if (batch === undefined || batch === open.get(task)) continue
        open.set(task, batch)
        executions.push(batch)
        continue
      }
      const prepared = this.#job(claim, task)
      if (prepared instanceof JobExecution) executions.push(prepared)
      else refused(claim, prepared)
    }
    // Most claims end here: no further pass over them.
    if (open === undefined) return executions as JobExecution[]
    return executions.map((one) =>
      one instanceof JobExecution ? one : new BatchExecution(one.task, one.claims, this.#client),
    )
  }

  /** The batch that the claim has joined: a new one if `open` is full; undefined if the claim was refused. */
  #joined(claim: Claim, open: OpenBatch | undefined, task: AnyBatchTask, refused: Refused): OpenBatch | undefined {
    const decoded = this.#decoded(claim)
    if (!('claim' in decoded)) {
      refused(claim, decoded)
      return undefined
    }
    if (open === undefined || open.claims.length === task.batch.size) return { task, claims: [decoded] }
    open.claims.push(decoded)
    return open
  }

  #job(claim: Claim, task: AnyTask | undefined): JobExecution | Verdict {
    const packing = this.#packing
    // The process of an isolated job finds its handler itself.
    if (task === undefined || task.kind === 'ordered' || isBatchTask(task)) return this.#unknownTask(claim)
    if (task.run === undefined && task.isolation === undefined) return this.#unknownTask(claim)
    const { payload, codec } = claim
    const lack = packing.lackFor(payload, codec)
    if (lack !== undefined) return this.#unreadable(claim, lack)
    try {
      const stored = metaOf(packing.unpackMeta(claim, 'meta', claim))
      const input = packing.unpack(payload, codec, 'payload', claim)
      return new JobExecution(claim, task, input, stored, this.#notes, this.#client)
    } catch (error) {
      return badPayload(error)
    }
  }

  /** The queue's own task runs all its jobs: a job may have been stored under another name. */
  #batches(claims: readonly Claim[], refused: Refused): Execution[] {
    const task = this.#registry.orderedTask(claims[0]!.queue)
    if (task?.run === undefined) {
      for (const claim of claims) refused(claim, this.#unknownTask(claim))
      return []
    }
    const decoded: DecodedClaim[] = []
    for (const claim of claims) {
      const prepared = this.#decoded(claim)
      if ('claim' in prepared) decoded.push(prepared)
      else refused(claim, prepared)
    }
    return batchesOf(decoded, task.batchSize).map((batch) => new OrderedExecution(task, batch, this.#client))
  }

  #decoded(claim: Claim): DecodedClaim | Verdict {
    const lack = lackIn(claim, this.#packing)
    if (lack !== undefined) return this.#unreadable(claim, lack)
    try {
      return decodedClaim(claim, this.#packing)
    } catch (error) {
      return badPayload(error)
    }
  }

  #unknownTask(claim: Claim): Verdict {
    const { task, queue } = claim
    const error = `no handler for task '${task}' in the worker that claimed it; the job is put back until a worker of queue '${queue}' has one. Add the task with its handler to \`tasks\`, or its old name to \`aliases\`.`
    return { kind: 'release', delayMs: this.#putAside(claim, 'unknown-task'), reason: 'unknown-task', error }
  }

  #unreadable(claim: Claim, lack: Lack): Verdict {
    const { error, isOver } = unreadable(claim, lack, this.#now())
    if (isOver) return badPayload(new CodecError(error))
    const { reason } = lack
    return { kind: 'release', delayMs: this.#putAside(claim, reason), reason, error }
  }
}

/** It will never fit: another run would not help. */
export function badPayload(error: unknown): Verdict {
  return { kind: 'bury', reason: 'bad-payload', error }
}

/** The codec, compression or key that is missing here to read the claim; undefined if all can be read. */
function lackIn({ payload, codec, payloads }: Claim, packing: Packing): Lack | undefined {
  if (payloads === undefined) return packing.lackFor(payload, codec)
  for (const { payload, codec } of payloads) {
    const lack = packing.lackFor(payload, codec)
    if (lack !== undefined) return lack
  }
  return undefined
}

/** Throws `CodecError` that says which payload cannot be decoded. */
export function decodedClaim(claim: Claim, packing: Packing): DecodedClaim {
  const { payload, codec, payloads } = claim
  if (payloads === undefined)
    return {
      claim,
      inputs: [packing.unpack(payload, codec, 'payload', claim)],
      metas: [metaOf(packing.unpackMeta(claim, 'meta', claim))],
    }
  const decoded = <Value>(decode: (one: ScoredPayload) => Value): Value[] =>
    payloads.map((one, i) => {
      try {
        return decode(one)
      } catch (error) {
        throw new CodecError(`${payloadName(claim, i)} cannot be decoded: ${messageOf(error)}`, { cause: error })
      }
    })
  return {
    claim,
    inputs: decoded(({ payload, codec }) => packing.unpack(payload, codec, 'ordered payload', claim)),
    metas: decoded((one) => metaOf(packing.unpackMeta(one, 'ordered meta', claim))),
  }
}

/**
 * The schema's outputs. Throws `InvalidJobError` that says which payload does not fit, and the errors of a schema that
 * itself fails.
 */
export async function checkedInputs(
  schema: Schema,
  { claim, inputs }: Pick<DecodedClaim, 'claim' | 'inputs'>,
): Promise<unknown[]> {
  const outputs: unknown[] = []
  for (const [i, input] of inputs.entries()) outputs.push(await validated(schema, input, payloadName(claim, i)))
  return outputs
}

function payloadName({ payloads }: Claim, i: number): string {
  if (payloads === undefined) return 'the stored input'
  return `payload ${i + 1} of ${payloads!.length} (score ${payloads![i]!.score})`
}
