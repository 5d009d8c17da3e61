/** A contender: one way to run jobs on Redis, in the form that every measure needs. */

/** The options and callbacks of a worker. */
export interface WorkPlan {
  /** Jobs at once; for the raw limit, jobs per call. */
  readonly concurrency: number
  /** Called at the start of the handler, which does nothing else. */
  started(input: unknown): void
  /** Called when the store has recorded the completion. */
  completed(): void
}

export interface Contender {
  /** Resolves when the store has the job. */
  enqueue(input: unknown): Promise<unknown>
  /** Enqueues all of them by one call. */
  enqueueMany(inputs: readonly unknown[]): Promise<unknown>
  /** Starts a worker, which runs until `close`. Resolves when it is running. */
  work(plan: WorkPlan): Promise<void>
  /** Stops the worker and disconnects. */
  close(): Promise<void>
}

/**
 * Connects. `queues`: the number of queues that it serves; jobs go to the first. `shards`: per queue, if the contender
 * has shards.
 */
export type OpenContender = (url: string, queues: number, shards: number) => Promise<Contender>

export const contenderNames = ['millrace', 'bullmq', 'bee-queue', 'prototype', 'raw'] as const

/** Millrace without its history, and with everything that watches it. Each has a module of its own. */
export const watchNames = ['unwatched', 'watched'] as const

/** What the prototype keeps in addition, each with those before it: see `prototype-promises`. */
export const promiseSteps = ['ids', 'order', 'fences', 'calls'] as const
export type PromiseStep = (typeof promiseSteps)[number]
/** The prototype with these. */
export const promiseNames = promiseSteps.map((step) => `with ${step}` as const)

/** A contender that has a module here. */
export type HomeName = (typeof contenderNames)[number] | (typeof watchNames)[number] | (typeof promiseNames)[number]

/** `baseline`: Millrace of another checkout. */
export type ContenderName = HomeName | 'baseline'

/** Modules are imported by name, so a process loads only the module of its contender. */
export const openers: Readonly<Record<HomeName, () => Promise<{ readonly open: OpenContender }>>> = {
  millrace: () => import('./millrace-redis.js'),
  bullmq: () => import('./rival-bullmq.js'),
  'bee-queue': () => import('./rival-bee-queue.js'),
  prototype: () => import('./prototype-redis.js'),
  raw: () => import('./raw-redis.js'),
  'with ids': () => promising('ids'),
  'with order': () => promising('order'),
  'with fences': () => promising('fences'),
  'with calls': () => promising('calls'),
  unwatched: () => import('./millrace-unwatched.js'),
  watched: () => import('./millrace-watched.js'),
}

async function promising(step: PromiseStep): Promise<{ readonly open: OpenContender }> {
  const { openStep } = await import('./prototype-promises.js')
  return { open: openStep(step) }
}
