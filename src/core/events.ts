/** Events: what the machinery says of itself, each a `noun.pastTense`. It prints nothing; a subscriber may. */

import { type Channel, channel } from 'node:diagnostics_channel'
import type { EnqueueOutcome, JobState, Progress } from './job.js'
import type { JobCounter } from './job-counter.js'

/** One job as events name it. */
export interface JobRef {
  readonly queue: string
  readonly id: string
  readonly task: string
}

/** One tick of a schedule as events name it; `tickAt` is its instant in ms since 1970. */
interface TickRef {
  readonly schedule: string
  readonly queue: string
  readonly tickAt: number
}

/** Why a tick could not be enqueued: its queue is full or drains, or there was an error. */
type TickRefusal = 'full' | 'draining' | 'failed'

/** Why a worker asks to be replaced: it ran `maxJobs`, its process outgrew `maxRss`, slots of it were retired, or an operator wants it. */
export type RecycleReason = 'max-jobs' | 'max-rss' | 'slot-retired' | 'ordered'

export interface EventMap {
  'job.enqueued': JobRef & { readonly outcome: EnqueueOutcome }
  'job.started': JobRef & { readonly attempt: number; readonly worker: string }
  /** Its handler has reported how far it is. */
  'job.progressed': JobRef & { readonly attempt: number; readonly progress: Progress }
  'job.completed': JobRef & { readonly attempt: number; readonly runMs: number }
  'job.failed': JobRef & { readonly attempt: number; readonly error: unknown; readonly retryMs: number | undefined }
  'job.buried': JobRef & { readonly reason: string; readonly error: string | undefined }
  /** `holdMs`: how long nothing of its group, or of its queue, is started, where its handler asked for that. */
  'job.released': JobRef & { readonly reason: string; readonly delayMs: number; readonly holdMs?: number }
  'job.cancelled': JobRef & { readonly reason: string | undefined }
  /** A lease ended unsettled and this process found it: `worker` died, was stopped, or lost the store. `charged`: the job ran alone. */
  'job.crashed': JobRef & { readonly worker: string; readonly charged: boolean; readonly crashes: number }
  /** Its worker is gone, and its process goes on: `worker` watches it from now on. `child`: the number of the process. */
  'job.adopted': JobRef & { readonly worker: string; readonly child: number }
  /** Its worker stops, and it goes on in its own process. */
  'job.detached': JobRef & { readonly worker: string; readonly child: number }
  /** It has run for longer than its task's `slowAfter`, and goes on. */
  'job.slow': JobRef & { readonly attempt: number; readonly runMs: number }
  /** What the attempt reported was refused: its lease was lost, or the job is gone. */
  'settle.refused': JobRef & { readonly kind: string; readonly answer: 'lost' | 'gone' }
  'lease.lost': JobRef & { readonly child?: number }
  /** The system does not tell how large a process is: `maxHeap` of these tasks bounds their heaps alone. */
  'heap.unwatched': { readonly worker: string; readonly tasks: readonly string[] }
  /** The process of an isolated job could not be started, or could not load its task; the job waits for another version of it. */
  'process.failed': JobRef & { readonly child: number | undefined; readonly error: string }
  /** The process of an adopted job has settled it and ended: `state` of the job then; undefined where nothing is kept of it. */
  'process.ended': JobRef & { readonly child: number; readonly state: JobState | undefined }
  /** A job of a throttled queue was claimed, and not started: what its start would have counted is counted all the same. */
  'permit.wasted': JobRef & { readonly reason: string }
  /** A job of a throttled queue began so many ms later than its limit counts with: a window near it may hold one start too many. */
  'start.late': JobRef & { readonly lateMs: number }
  /** A result that could not be kept: not encodable, or too large. The job completed all the same. */
  'result.dropped': JobRef & { readonly error: string }
  /** A handler went on after its job was given up and keeps its slot until it ends; `left`: slots that still take jobs. */
  'slot.retired': JobRef & { readonly worker: string; readonly left: number }
  /** The event loop stood still, and with it every handler here; `jobs`: those in hand then. `givenUp`: for so long that their leases were let go. */
  'loop.blocked': { readonly forMs: number; readonly jobs: readonly JobRef[]; readonly givenUp: boolean }
  'queue.claimed': { readonly queue: string; readonly jobs: number; readonly worker: string }
  /** Its keys are not ours or do not fit together: its jobs wait, it is left out, and looked at again in `retryMs`. `error` names the remedy. */
  'queue.damaged': { readonly queue: string; readonly shard: number; readonly error: unknown; readonly retryMs: number }
  /** A queue that was damaged can be used again. */
  'queue.mended': { readonly queue: string }
  /** A schedule has enqueued the job of a tick, `lateMs` after its instant. */
  'schedule.ticked': JobRef & TickRef & { readonly lateMs: number; readonly outcome: 'added' | 'merged' | 'duplicate' }
  /** So many ticks of a schedule, up to this one, were left out: its last job waits or runs. */
  'schedule.skipped': TickRef & { readonly lastId: string | undefined; readonly ticks: number }
  /** From this tick on nobody was there: so many are enqueued now, and so many left out (1,000: as many or more). */
  'schedule.missed': TickRef & { readonly enqueued: number; readonly leftOut: number }
  /** A tick could not be enqueued, and is tried again in `retryMs`. Of `'failed'` the error tells why. */
  'schedule.refused': TickRef & { readonly reason: TickRefusal; readonly error: unknown; readonly retryMs: number }
  /** A schedule was not stored as the configuration declares it, and is now. */
  'schedule.reconciled': { readonly schedule: string; readonly change: 'added' | 'changed' | 'removed' }
  'worker.started': { readonly worker: string; readonly queues: readonly string[] }
  /** `apiCalls`: of a store whose calls are paid for, those that its mill has made so far, by kind. */
  'worker.stopped': { readonly worker: string; readonly apiCalls?: Readonly<Record<string, number>> }
  /** An operator has ordered it to stop, or to be replaced. */
  'worker.ordered': { readonly worker: string; readonly order: 'stop' | 'recycle' }
  /** It takes no more jobs and stops, so that another process can take its place. */
  'worker.recycling': { readonly worker: string; readonly reason: RecycleReason }
  /** It takes no more jobs: an error that no waiting mends. `worker.finished()` rejects with it. */
  'worker.failed': { readonly worker: string; readonly error: unknown }
  /** A call to the store failed; the worker tries again in `retryMs`, or, where that is undefined, never. */
  'store.failed': { readonly call: string; readonly error: unknown; readonly retryMs: number | undefined }
  /** A hook or listener of the user's threw; nothing depends on it. */
  'hook.failed': { readonly hook: string; readonly error: unknown }
}

export type EventName = keyof EventMap
export type Listener<Name extends EventName> = (event: EventMap[Name]) => void

/** Who hears of one event. */
interface Audience {
  /** Each change makes a new list: a listener that is added during an event hears the next one first. */
  listeners: readonly Listener<EventName>[]
  readonly channel: Channel
}

/**
 * Listeners by event. A listener that throws or rejects is reported as `hook.failed` and disturbs nobody. Each event goes to the
 * channel of its name too, where somebody has subscribed to that.
 */
export class Events {
  /** Counts the same jobs for a history; undefined where none is kept. */
  counter: JobCounter | undefined
  readonly #audiences = new Map<EventName, Audience>()

  /** Adds a listener; returns what removes it again. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    const added = listener as Listener<EventName>
    const audience = this.#of(name)
    audience.listeners = [...new Set([...audience.listeners, added])]
    return () => {
      audience.listeners = audience.listeners.filter((one) => one !== added)
    }
  }

  /** Whether anyone listens: lets hot paths skip building the event. */
  has(name: EventName): boolean {
    const { listeners, channel } = this.#of(name)
    return listeners.length > 0 || channel.hasSubscribers
  }

  emit<Name extends EventName>(name: Name, event: EventMap[Name]): void {
    const { listeners, channel } = this.#of(name)
    for (const listener of listeners) {
      try {
        const answer: unknown = listener(event)
        // An async listener that rejects would else end the process.
        if (answer instanceof Promise) answer.catch((error: unknown) => this.#failed(name, error))
      } catch (error) {
        this.#failed(name, error)
      }
    }
    if (channel.hasSubscribers) channel.publish(event)
  }

  /** Both found by one look: this is asked several times for each job. */
  #of(name: EventName): Audience {
    let audience = this.#audiences.get(name)
    if (audience === undefined) {
      audience = { listeners: [], channel: channel(`millrace:${name}`) }
      this.#audiences.set(name, audience)
    }
    return audience
  }

  #failed(name: EventName, error: unknown): void {
    if (name !== 'hook.failed') this.emit('hook.failed', { hook: `listener of ${name}`, error })
  }
}
