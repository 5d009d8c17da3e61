/** The facet `steps` of a memory store: what running jobs have reached, and the signals that are sent to jobs. */

import { payloadBytes } from '../../../core/values/codec.js'
import type { Steps, StoredStep } from '../../contract/steps.js'
import { isSignalEntry } from '../../contract/steps.js'
import { mostSignalBytes, mostSignals, upkeepLimit } from '../../rules/bounds.js'
import type { MemoryAdmin } from '../memory-admin.js'
import { defined, type MemoryJob } from '../queue/memory-job.js'
import type { MemoryQueue } from '../queue/memory-queue.js'
import { extend } from '../work/memory-settle.js'

export function memorySteps(store: MemoryAdmin): Steps {
  function wake(queue: MemoryQueue, job: MemoryJob, now: number): void {
    queue.wake(job, now)
    if (queue.isCalling(job.spec.id, now)) store.ring(job.queue)
  }

  return {
    async keep(claim, { name, ...step }, leaseMs) {
      const queue = store.queues().holding(claim.queue, claim.id)
      const now = store.now()
      const answer = extend(queue, { ...claim, leaseMs }, now)
      if (answer === 'lost') return answer
      const job = queue.jobs.get(claim.id)!
      job.expiresAt = undefined
      if (hasStep(job, name)) return answer
      const kept =
        step.kind === 'sleep'
          ? { kind: step.kind, until: now + step.forMs }
          : { kind: step.kind, payload: step.payload, codec: step.codec }
      job.steps = [...job.steps, defined({ name, ...kept, at: now })]
      return answer
    },

    async read({ queue: name, id }) {
      const queue = store.queues().holding(name, id)
      const [job, now] = [queue.jobs.get(id), store.now()]
      return job === undefined || queue.isHidden(job, now) ? undefined : { now, steps: job.steps }
    },

    async forget({ queue: name, id }, entry, of) {
      const queue = store.queues().holding(name, id)
      const job = queue.jobs.get(id)
      if (job === undefined || queue.isHidden(job, store.now())) return false
      const left = job.steps.filter((one) => isSignalEntry(one) !== (of === 'signal') || one.name !== entry)
      const isThere = left.length < job.steps.length
      job.steps = left
      return isThere
    },

    async signal({ queue: name, id }, { name: signal, payload, codec }) {
      const queue = store.queues().holding(name, id)
      const [job, now] = [queue.jobs.get(id), store.now()]
      if (job === undefined || job.state === 'completed' || queue.isHidden(job, now)) return 'gone'
      const same = job.steps.find((entry) => isSignalEntry(entry) && entry.name === signal)
      if (same !== undefined) return same.kind === 'signal' ? 'duplicate' : 'gone'
      const sent: StoredStep = defined({ name: signal, kind: 'signal', at: now, payload, codec })
      const signals = job.steps.filter(({ kind }) => kind === 'signal')
      const isAwaited = job.awaits?.signal === signal
      // The signal that a job waits for always has room.
      if (!isAwaited && (signals.length >= mostSignals || bytesOf([...signals, sent]) > mostSignalBytes)) return 'full'
      job.steps = [...job.steps, sent]
      if (!isAwaited) return 'kept'
      wake(queue, job, now)
      return 'delivered'
    },

    async sweep() {
      const now = store.now()
      const due = store
        .queues()
        .all()
        .flatMap((queue) => queue.inState('waiting').map((job) => ({ queue, job })))
        .filter(({ job: { awaits } }) => awaits?.until !== undefined && awaits.until <= now)
        .sort((a, b) => a.job.awaits!.until! - b.job.awaits!.until!)
      for (const { queue, job } of due.slice(0, upkeepLimit)) {
        job.steps = [...job.steps, { name: job.awaits!.signal, kind: 'timeout', at: now }]
        wake(queue, job, now)
      }
      return { woken: Math.min(due.length, upkeepLimit), more: due.length > upkeepLimit }
    },
  }
}

function hasStep({ steps }: MemoryJob, name: string): boolean {
  return steps.some((step) => !isSignalEntry(step) && step.name === name)
}

function bytesOf(steps: readonly StoredStep[]): number {
  return steps.reduce((sum, { payload }) => sum + (payload === undefined ? 0 : payloadBytes(payload)), 0)
}
