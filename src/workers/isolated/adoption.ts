/**
 * Adoption: before its first claim a worker takes over the isolated jobs of dead workers whose processes still run on
 * its machine. Each takes a slot until its process ends. The process settles the job itself; if it did not, this worker
 * judges it.
 */

import type { Events } from '../../core/events.js'
import type { Random } from '../../core/platform/clock.js'
import type { Registry } from '../../core/registry.js'
import type { AnyTask } from '../../core/task/any-task.js'
import { pagesOf } from '../../core/values/pages.js'
import { identityIn, type ProcessIdentity } from '../../runtime/process/process-identity.js'
import { ageMs, isDead, isNeighbour } from '../../runtime/process/process-peers.js'
import { Stillness, switchesOf } from '../../runtime/process/stillness.js'
import { emitSettled } from '../../runtime/run/run-events.js'
import { type SettlementRules, type Settler, settlementOf } from '../../runtime/run/settlement.js'
import type { Verdict } from '../../runtime/run/verdict.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { Records, StoredJob } from '../../stores/contract/job-records.js'
import type { ClaimKey } from '../../stores/contract/settle.js'
import type { HeldClaim, WorkerRegistry } from '../../stores/contract/worker-registry.js'
import type { Slots } from '../slots.js'
import type { JobStatus } from '../worker-status.js'
import { startedWith } from './child-environment.js'
import { verdictOnDeath } from './child-process.js'
import { endGroup, endRemains } from './job-group.js'

interface AdoptionParts {
  readonly worker: string
  /** Whose processes it adopts before those of others. */
  readonly affinity: string
  readonly identity: ProcessIdentity
  readonly queues: readonly string[]
  readonly registry: Registry
  readonly workers: WorkerRegistry
  readonly records: Records
  readonly slots: Slots
  readonly settler: Settler
  readonly rules: SettlementRules
  readonly events: Events
  readonly random: Random
}

/** How often to look whether an adopted process has ended. */
const watchMs = 500
const pageSize = 200
/** How long processes are left to workers of their own affinity, which may be about to start. */
const patienceMs = 60_000

/** A claim whose beats name the process in which it runs. */
type ProcessClaim = HeldClaim & ProcessIdentity

/** Whether the claim runs in a live process of its own on this machine. */
export function isAlive(claim: HeldClaim, here: ProcessIdentity): boolean {
  const { host, boot, pidns, pid, ticks } = claim
  if (host === undefined || boot === undefined || pidns === undefined) return false
  if (pid === undefined || ticks === undefined) return false
  return isNeighbour({ host, boot, pidns }, here) && !isDead({ pid, ticks })
}

export class Adoption {
  readonly #parts: AdoptionParts
  readonly #adopted = new Map<ProcessClaim, { readonly stillness: Stillness; readonly slot: number }>()
  /** Perhaps adopted: the store has not answered. */
  readonly #doubtful = new Set<HeldClaim>()
  #timer: NodeJS.Timeout | undefined
  /** Tries again: for what the workers of other affinities have left to themselves, and after a failure of the store. */
  #patience: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(parts: AdoptionParts) {
    this.#parts = parts
  }

  /**
   * Ends what remains of jobs whose processes are dead, then adopts the jobs that it finds, as far as there are slots.
   * Never rejects.
   */
  start(): Promise<void> {
    const { worker, affinity: own, events } = this.#parts
    endRemains(worker, events)
    return this.#try((affinity) => affinity === own)
  }

  /** Adopts those of the wanted affinity, and later all that are left then. Never rejects. */
  async #try(isWanted: (affinity: string) => boolean): Promise<void> {
    try {
      await this.#settleDoubts()
      if (await this.#adopt(isWanted)) return
    } catch (error) {
      this.#parts.events.emit('store.failed', { call: 'workers.adopt', error, retryMs: patienceMs })
    }
    if (!this.#isStopped) this.#patience = setTimeout(() => void this.#try(() => true), patienceMs).unref()
  }

  /** Watches those whose adoption was carried out although nobody heard of it. */
  async #settleDoubts(): Promise<void> {
    if (this.#doubtful.size === 0) return
    const { workers, worker, slots, identity } = this.#parts
    const own = await workers.held(worker)
    for (const claim of this.#doubtful) {
      const isOwn = own.some(
        ({ queue, id, fence }) => queue === claim.queue && id === claim.id && fence === claim.fence,
      )
      if (isOwn && isAlive(claim, identity)) {
        // It runs on without a slot, and is adopted by the next worker.
        if (slots.free <= 0 || this.#isStopped) return
        this.#watch(claim as ProcessClaim, slots.take())
      }
      this.#doubtful.delete(claim)
    }
  }

  /** Adopts those of the wanted affinity. Resolves with whether none of others is left. */
  async #adopt(isWanted: (affinity: string) => boolean): Promise<boolean> {
    const { workers, worker, slots, identity } = this.#parts
    let isAll = true
    for (const dead of await this.#deadWorkers()) {
      for (const claim of await workers.held(dead)) {
        if (slots.free <= 0 || this.#isStopped) return isAll
        if (!isAlive(claim, identity) || !this.#outlives(claim)) continue
        const { affinity, slot: wanted } = startedWith(claim.pid!)
        if (!isWanted(affinity)) {
          isAll = false
          continue
        }
        // Before the store is asked: the worker may claim meanwhile.
        const slot = slots.take(wanted)
        this.#doubtful.add(claim)
        const isAdopted = await workers.adopt(claim, dead, worker).catch((error: unknown) => {
          slots.give(slot)
          throw error
        })
        if (isAdopted) this.#watch(claim as ProcessClaim, slot)
        else slots.give(slot)
        this.#doubtful.delete(claim)
      }
    }
    return isAll
  }

  /** The claims that are, or may be, adopted. */
  get held(): readonly ClaimKey[] {
    return [...this.#adopted.keys(), ...this.#doubtful]
  }

  /** The statuses of the watched jobs. */
  statuses(): JobStatus[] {
    return [...this.#adopted.keys()].map((claim) => ({
      ...{ queue: claim.queue, id: claim.id, task: claim.task, phase: 'adopted' },
      forMs: Math.round(ageMs(claim, this.#parts.identity)),
    }))
  }

  /** Leaves the processes to themselves, and adopts no more. */
  stop(): void {
    this.#isStopped = true
    clearInterval(this.#timer)
    clearTimeout(this.#patience)
  }

  /** Of the workers that serve these queues, those of this machine whose process is dead. */
  async #deadWorkers(): Promise<Set<string>> {
    const { records, queues, identity } = this.#parts
    const dead = new Set<string>()
    const running = { state: 'running', by: 'time', limit: pageSize } as const
    for (const queue of queues)
      for await (const { jobs } of pagesOf((from) => records.list(queue, { ...running, ...from })))
        for (const { worker, host, boot, pidns, ticks } of jobs) {
          if (worker === undefined || ticks === undefined || dead.has(worker)) continue
          if (!isNeighbour({ host: host!, boot: boot ?? '', pidns: pidns ?? '' }, identity)) continue
          const owner = identityIn(worker, identity)
          if (owner !== undefined && isDead(owner)) dead.add(worker)
        }
    return dead
  }

  /** A process that ends with its worker has noticed by now. */
  #outlives({ task }: HeldClaim): boolean {
    return this.#taskOf(task)?.isolation?.onSupervisorLoss === 'detach'
  }

  #watch(claim: ProcessClaim, slot: number): void {
    const { worker, events } = this.#parts
    this.#adopted.set(claim, { stillness: new Stillness(performance.now()), slot })
    const { queue, id, task, pid } = claim
    events.emit('job.adopted', { queue, id, task, worker, child: pid })
    if (this.#isStopped) return
    this.#timer ??= setInterval(() => this.#look(), watchMs)
  }

  #look(): void {
    for (const [claim, { stillness, slot }] of this.#adopted) {
      const isOver = isDead(claim)
      if (!isOver && !this.#isStill(claim, stillness)) continue
      this.#adopted.delete(claim)
      this.#parts.slots.give(slot)
      if (isOver) {
        // What it had started has lost its leader.
        endGroup(claim)
        void this.#judge(claim, ageMs(claim, this.#parts.identity))
      } else this.#end(claim)
    }
    if (this.#adopted.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** A process that stood still for a lease has not kept it. */
  #isStill({ queue, pid }: ProcessClaim, stillness: Stillness): boolean {
    return stillness.look(performance.now(), switchesOf(pid)) >= this.#parts.registry.queue(queue).leaseMs
  }

  /** It must not wake up next to its successor. */
  #end(claim: ProcessClaim): void {
    const { queue, id, task, pid } = claim
    endGroup(claim)
    this.#parts.events.emit('lease.lost', { queue, id, task, child: pid })
  }

  /** It has settled its job, or has died with it; the store knows which. */
  async #judge(held: ProcessClaim, livedMs: number): Promise<void> {
    const { records, registry, settler, rules, events } = this.#parts
    const { queue, id, fence } = held
    try {
      const job = await records.get(queue, id)
      if (job?.state !== 'running' || job.worker !== this.#parts.worker) {
        events.emit('process.ended', { queue, id, task: held.task, child: held.pid, state: job?.state })
        return
      }
      const claim = { ...job, fence } as Claim
      const verdict = this.#verdictOn(held, job, livedMs)
      settler.settle(settlementOf(claim, verdict, registry.queue(queue).results, rules), (answer) => {
        if (answer === 'ok') emitSettled(events, claim, verdict, answer, 0)
      })
    } catch (error) {
      // Its lease ends, and the job runs again.
      events.emit('store.failed', { call: 'records.get', error, retryMs: undefined })
    }
  }

  #verdictOn(held: ProcessClaim, { startedAt, attempt, log }: StoredJob, livedMs: number): Verdict {
    const task = this.#taskOf(held.task)!
    const end = { kind: 'died', code: null, signal: null, tail: lastLines(log) } as const
    // Its own guard kills it then; no other cause of its end can be known here.
    const isOverdue = livedMs >= task.timeLimitMs
    const { queue, id, pid } = held
    return verdictOnDeath(
      {
        ...{ claim: { queue, id, task: held.task, attempt }, task, pid, end, isOverdue },
        hasStarted: startedAt !== undefined,
      },
      this.#parts,
    )
  }

  #taskOf(name: string): Extract<AnyTask, { kind: 'plain' }> | undefined {
    const task = this.#parts.registry.find(name)
    return task?.kind === 'plain' ? task : undefined
  }
}

const longestTail = 4_096

function lastLines(log: string | undefined): string {
  return (log ?? '').slice(-longestTail).trimEnd()
}
