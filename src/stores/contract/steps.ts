/**
 * The facet `steps`: what a plain job keeps of its run while it lasts, and the signals that are sent to it.
 *
 * A job has entries. A step has the result of a function that ran, a sleep has its end; both share their names. A signal
 * has its data; a signal and the end of a wait in vain share their names too, the name of the signal. The first entry of
 * a name stays. Entries last as long as the job, in the morgue too, and go when it has completed, was cancelled, deleted,
 * or replaced.
 *
 * A job that has reached a step, a sleep or a wait does not expire any more (`NewJob.expiresMs`).
 *
 * The claim of a job ends by the settle kind `'wait'` if its handler waits for a signal. The job then waits (state
 * `waiting`): nothing claims it, it is in no lane and takes no permit, and it counts as pending. Once the signal or its
 * time has come it is ready in its old place. If an entry of the name is there already, it is so at once.
 */

import { UnsupportedByStoreError } from '../../core/errors.js'
import type { Payload } from '../../core/values/codec.js'
import type { JobKey } from './job-records.js'
import type { ClaimKey } from './settle.js'

/** A step or a sleep that a run has reached. */
export type NewStep = { readonly name: string } & (
  | { readonly kind: 'step'; readonly payload?: Payload; readonly codec?: string }
  | { readonly kind: 'sleep'; readonly forMs: number }
)

export interface NewSignal {
  readonly name: string
  readonly payload?: Payload
  readonly codec?: string
}

export interface StoredStep {
  readonly name: string
  /** `'timeout'`: a wait for the signal of this name is over in vain. */
  readonly kind: 'step' | 'sleep' | 'signal' | 'timeout'
  /** When it was stored. */
  readonly at: number
  /** The end of a sleep: its time, or when an operator ended it (`Records.runNow`). */
  readonly until?: number
  /** Of a step or a signal. Absent: it has no value. */
  readonly payload?: Payload
  readonly codec?: string
}

/** Entries that share their names: steps and sleeps, or signals and waits that were in vain. */
export type EntryKind = 'step' | 'signal'

/** The entries of a job. */
export interface StepList {
  readonly now: number
  /** In the order in which they were stored. */
  readonly steps: readonly StoredStep[]
}

/**
 * `'delivered'`: the job waited for it, and is ready. `'kept'`: the job finds it when it waits. `'duplicate'`: it has one
 * of this name already, which stays. `'full'`: it has `mostSignals`, or they have `mostSignalBytes`. `'gone'`: there is
 * no such job, it has ended, or its wait for this signal is over.
 */
export type SignalAnswer = 'delivered' | 'kept' | 'duplicate' | 'full' | 'gone'

export interface Steps {
  /**
   * Stores a step or a sleep, and renews the lease like `extend`, whose answers it has. A name that is stored stays as it
   * is.
   */
  keep(claim: ClaimKey, step: NewStep, leaseMs: number): Promise<'ok' | 'lost' | 'cancel'>
  /** The entries of a job; undefined if it is gone. */
  read(job: JobKey): Promise<StepList | undefined>
  /**
   * Removes the step or sleep of this name, or with `of: 'signal'` the signal or the end of a wait in vain; a run that is
   * under way has read it already. A signal that is forgotten may be sent again. False: there is none.
   */
  forget(job: JobKey, name: string, of: EntryKind): Promise<boolean>
  /** Sends a signal to a job that has not completed. A dead job finds it when it is revived. */
  signal(job: JobKey, signal: NewSignal): Promise<SignalAnswer>
  /**
   * One bounded step: jobs whose wait is over in vain are ready, each with an entry that says so, and counted. `worker` calls it about
   * every 5 s, and again while `more`. If another worker has called it in the last few seconds, a store may do nothing.
   */
  sweep(worker: string): Promise<{ readonly woken: number; readonly more: boolean }>
}

/** Steps and sleeps have their names apart from those of signals and of waits that were in vain. */
export function isSignalEntry({ kind }: Pick<StoredStep, 'kind'>): boolean {
  return kind === 'signal' || kind === 'timeout'
}

/** The facet of a store. Throws `UnsupportedByStoreError`. */
export function stepsOf({
  steps,
  traits,
}: {
  readonly steps?: Steps
  readonly traits: { readonly name: string }
}): Steps {
  if (steps !== undefined) return steps
  throw new UnsupportedByStoreError(
    traits.name,
    'steps of a job, sleeps and signals',
    'Use another store, such as sqlite: or redis:, or make a job of each step, which enqueues the next.',
  )
}
