/** A contender: one way to run jobs on Redis, in the shape that every measure asks for. */

/** What a worker tells of its jobs. */
export interface WorkPlan {
  /** Jobs at once; of the raw limit: jobs per call. */
  readonly concurrency: number
  /** Called at the start of the handler, which does nothing else. */
  started(input: unknown): void
  /** Called when the store has the completion. */
  completed(): void
}

export interface Contender {
  /** Resolves when the store has the job. */
  enqueue(input: unknown): Promise<unknown>
  /** All of them by one call. */
  enqueueMany(inputs: readonly unknown[]): Promise<unknown>
  /** Starts a worker, which works until `close`; resolves when it is running. */
  work(plan: WorkPlan): Promise<void>
  /** Stops the worker and disconnects. */
  close(): Promise<void>
}

/** Connects; `queues`: how many it serves, of which jobs go to the first; `shards`: of each, where there are such. */
export type OpenContender = (url: string, queues: number, shards: number) => Promise<Contender>

export const contenderNames = ['millrace', 'bullmq', 'bee-queue', 'prototype', 'raw'] as const

/** Millrace without its history; with all that watches it; each in a module of its own. */
export const watchNames = ['unwatched', 'watched'] as const

/** One that has a module here. */
export type HomeName = (typeof contenderNames)[number] | (typeof watchNames)[number]

/** `baseline`: Millrace as another checkout has it. */
export type ContenderName = HomeName | 'baseline'

/** Modules are imported by name, so that a process loads nothing of the others. */
export const openers: Readonly<Record<HomeName, () => Promise<{ readonly open: OpenContender }>>> = {
  millrace: () => import('./millrace-redis.js'),
  bullmq: () => import('./rival-bullmq.js'),
  'bee-queue': () => import('./rival-bee-queue.js'),
  prototype: () => import('./prototype-redis.js'),
  raw: () => import('./raw-redis.js'),
  unwatched: () => import('./millrace-unwatched.js'),
  watched: () => import('./millrace-watched.js'),
}
