/**
 * The child calls of a job: the jobs that its handler enqueues. Each call has a name that a later run of the job gives
 * it again, so that earlier calls are recognised.
 */

import { createHash, type Hash, type Hmac } from 'node:crypto'
import { InvalidJobError } from '../../core/errors.js'
import type { JobHandle, JobMeta } from '../../core/job/job.js'
import { type JobOrigin, lifeIn } from '../../core/job/job-origin.js'
import { type AnyTask, refuseNoTask } from '../../core/task/any-task.js'
import type { AnyEnqueueOptions, ChildOptions } from '../../core/task/enqueue-options.js'
import type { Flow, FlowCall, FlowContent, FlowHandles } from '../../core/task/flow.js'
import type { Joined, JoinSets, MemberSet } from '../../core/task/join-sets.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import type { Payload } from '../../core/values/codec.js'
import { digestId, idMistake, orderedIdOf } from '../../core/values/ids.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { UserConnection } from '../../stores/contract/transactions.js'
import { stepInside } from './job-steps.js'
import type { JoinRun } from './joined-members.js'

/** The calls of handlers to their mill: they enqueue jobs, read the members of joins, and get the context. */
export interface ChildClient {
  /** The value of `ctx.context`. Throws `ConfigError` if there is none. */
  readonly context: unknown
  /** Encodes a value with the codec. Throws `CodecError`. */
  encode(value: unknown): Payload
  /** A hash of content for a name, keyed if this stored payload is sealed: by its key. */
  contentHash(beside: Pick<Claim, 'payload' | 'codec'>): Hash | Hmac
  enqueueItem(item: EnqueueItem): Promise<JobHandle>
  enqueueItems(items: EnqueueItem[]): Promise<JobHandle[]>
  flow<Returned>(build: (flow: Flow) => Returned, call: FlowCall): Promise<FlowHandles<Returned>>
  /** In a transaction of the handler. Throws the errors of `mill.enqueueIn()`. */
  enqueueIn(tx: UserConnection, item: EnqueueItem): JobHandle | Promise<JobHandle>
  /** Ends the job of the claim in a transaction of the handler. Throws `LeaseLostError`. */
  completeIn(tx: UserConnection, claim: Claim): Promise<void>
  /** What became of the members of a join. Throws the errors of `joinedMembers`. */
  joined(run: JoinRun, sets: ReadonlyMap<string, MemberSet>): Promise<Joined<JoinSets>>
}

export class ChildCalls {
  readonly #claim: Claim
  readonly #life: string | undefined
  readonly #origin: JobOrigin
  readonly #client: Pick<ChildClient, 'encode' | 'contentHash'>
  /** How often each name was given in this run. */
  readonly #given = new Map<string, number>()

  /** `meta`: that of the job, as stored. */
  constructor(claim: Claim, meta: JobMeta, client: Pick<ChildClient, 'encode' | 'contentHash'>) {
    const { queue, id, task } = claim
    this.#claim = claim
    this.#life = lifeIn(meta)
    this.#origin = { parent: { queue, id, task } }
    this.#client = client
  }

  /**
   * One call as an item to enqueue. Throws `InvalidArgumentError` if `task` is no task, and `InvalidJobError` for an
   * invalid key.
   */
  item(task: unknown, input: unknown, options: object | undefined): EnqueueItem {
    refuseNoTask(task, 'ctx.enqueue()')
    const asked = (options ?? {}) as AnyEnqueueOptions & ChildOptions
    const { key, ...own } = asked
    const child = key === undefined ? this.#numbered(task, input, own) : this.#keyed(task, key, own)
    return { task, input, options: own, origin: this.#origin, child, asked }
  }

  /**
   * One call of `ctx.flow()`. `isDone`: whether the call of this name was made before; `done`: it was made, with these jobs.
   * Throws `InvalidJobError` for an invalid key.
   */
  flow(
    key: unknown,
    isDone: (name: string) => boolean,
    done: (name: string, jobs: readonly JobHandle[]) => void,
  ): FlowCall {
    const ofKey = key === undefined ? undefined : this.#name(['flow', 'key', keyText(key, 'a flow')])
    const step = this.#step()
    return {
      origin: this.#origin,
      named: (jobs) => {
        const name = ofKey ?? this.#counted(this.#name(['flow', ...this.#payloads(), ...step], this.#contentOf(jobs)))
        return { name, isDone: isDone(name) }
      },
      enqueued: done,
    }
  }

  /** All jobs of a flow: one with other jobs is another. */
  #contentOf(jobs: readonly FlowContent[]): string {
    const hash = createHash('sha256')
    for (const { task, input, id } of jobs) {
      const content = this.#encoded(input)
      hash.update(`${JSON.stringify([task.name, id ?? null, content.length])}`).update(content)
    }
    return hash.digest('hex')
  }

  /** Two calls with the same key are one. */
  #keyed(task: AnyTask, key: unknown, options: AnyEnqueueOptions): string {
    const text = keyText(key, `job of task '${task.name}'`)
    if (task.kind === 'plain' && options.id !== undefined)
      throw new InvalidJobError(`job of task '${task.name}': give id or key, not both: a key makes the id.`)
    return this.#name([task.name, 'key', text])
  }

  /**
   * Numbered by input, not by position among all calls: if another run makes other calls, or in another order, no call
   * is mistaken for another, and none is lost. Nor is one that gives another id or queue, which means another job.
   */
  #numbered(task: AnyTask, input: unknown, { id, queue }: AnyEnqueueOptions): string {
    const ownId = orderedIdOf(id)
    const given = [
      ...(ownId === undefined ? [] : ['id', ownId]),
      ...(typeof queue === 'string' ? ['queue', queue] : []),
      ...this.#step(),
    ]
    return this.#counted(this.#name([task.name, 'input', ...this.#payloads(), ...given], this.#encoded(input)))
  }

  /** A later run does not call the function of a finished step: calls in steps must not count among the others. */
  #step(): string[] {
    const step = stepInside(this.#claim)
    return step === undefined ? [] : ['step', step]
  }

  /** The name, with the number of the call among those of this name. */
  #counted(name: string): string {
    const before = this.#given.get(name) ?? 0
    this.#given.set(name, before + 1)
    return before === 0 ? name : this.#name([name, before])
  }

  /** A run of an ordered job that receives other payloads than the run before makes other calls. */
  #payloads(): string[] {
    const { payloads } = this.#claim
    if (payloads === undefined) return []
    const hash = createHash('sha256')
    for (const { score, payload } of payloads) hash.update(`${score} ${payload.length} `).update(payload)
    return [hash.digest('hex')]
  }

  /** A value that cannot be encoded is refused by the enqueue. */
  #encoded(input: unknown): Payload {
    try {
      return this.#client.encode(input)
    } catch {
      return ''
    }
  }

  /**
   * The name is valid for this life of the job: a later job with the same id was created at another time, or has
   * another life. Content is hashed by the key of the job, which each of its runs has: readers of the store see names, and
   * must not be able to confirm guesses of a sealed input.
   */
  #name(call: readonly (string | number)[], content?: Payload): string {
    const { queue, id, createdAt } = this.#claim
    const head = JSON.stringify([queue, id, createdAt, this.#life, ...call])
    if (content === undefined) return digestId(createHash('sha256').update(head).digest())
    const hash = this.#client.contentHash(this.#claim.payloads?.[0] ?? this.#claim)
    return digestId(hash.update(head).update(content).digest())
  }
}

/** Throws `InvalidJobError`, which names `what`. */
function keyText(key: unknown, what: string): string {
  const text = orderedIdOf(key)
  if (text === undefined) throw new InvalidJobError(`${what}: key ${idMistake(key, true)}`)
  return text
}

/** The name of a call that enqueues all of these. */
export function namesAsOne(items: readonly EnqueueItem[]): string {
  const hash = createHash('sha256').update('many')
  for (const { child } of items) hash.update(child!)
  return digestId(hash.digest())
}
