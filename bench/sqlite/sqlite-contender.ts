/** A contender on SQLite: one queue in one file, in the form that every measure needs, and the measures themselves. */

import { join } from 'node:path'
import { roundsOf } from '../rounds.js'
import { workedOff } from './worked-off.js'

export interface SqliteContender {
  /** The result is awaited: then the job is stored. */
  enqueue(input: unknown): unknown
  /** Enqueues all of them by one call. */
  enqueueMany(inputs: readonly unknown[]): unknown
  /** Works off this number of waiting jobs. */
  work(jobs: number): Promise<void>
  close(): Promise<void>
}

/** Each opener opens a file that does not exist yet, and loads only what its contender needs. */
const openers = {
  millrace: openMillrace,
  'plainjob FULL': async (file: string) => (await import('./rival-plainjob.js')).openPlainjob(file, 'FULL'),
  'plainjob NORMAL': async (file: string) => (await import('./rival-plainjob.js')).openPlainjob(file, 'NORMAL'),
  'bunqueue FULL': async (file: string) => (await import('./rival-bunqueue.js')).openBunqueue(file, 'FULL'),
  'bunqueue default': async (file: string) => (await import('./rival-bunqueue.js')).openBunqueue(file, 'default'),
} satisfies Record<string, (file: string) => Promise<SqliteContender>>

export type SqliteContenderName = keyof typeof openers
export const sqliteContenderNames = Object.keys(openers) as readonly SqliteContenderName[]

const payload = { n: 12_345 }

const measures = {
  /** The median time in ms of one enqueue, awaited, after the other. */
  async lonely(contender: SqliteContender, jobs: number): Promise<number> {
    const took: number[] = []
    for (let i = 0; i < jobs; i += 1) {
      const startedAt = performance.now()
      await contender.enqueue(payload)
      took.push(performance.now() - startedAt)
    }
    return roundsOf(took).median
  },
  /** Jobs a second, all enqueued by one call. */
  async many(contender: SqliteContender, jobs: number): Promise<number> {
    const inputs = new Array<unknown>(jobs).fill(payload)
    return perSecond(jobs, () => contender.enqueueMany(inputs))
  },
  /** Jobs a second: blank jobs that already wait, from the start of a worker to its last completion. */
  async work(contender: SqliteContender, jobs: number): Promise<number> {
    await contender.enqueueMany(new Array<unknown>(jobs).fill(payload))
    return perSecond(jobs, () => contender.work(jobs))
  },
}

export type RivalMeasureName = keyof typeof measures

export interface RivalOrder {
  readonly measure: RivalMeasureName
  readonly jobs: number
}

/** Takes the measure on a file of its own in this folder. */
export async function measuredIn(
  folder: string,
  name: SqliteContenderName,
  { measure, jobs }: RivalOrder,
): Promise<number> {
  const contender = await openers[name](join(folder, `${process.hrtime.bigint()}.db`))
  try {
    return await measures[measure](contender, jobs)
  } finally {
    await contender.close()
  }
}

async function perSecond(jobs: number, work: () => unknown): Promise<number> {
  const startedAt = performance.now()
  await work()
  return (1_000 * jobs) / (performance.now() - startedAt)
}

async function openMillrace(file: string): Promise<SqliteContender> {
  const { defineTask, millrace } = await import('millrace')
  const blank = defineTask({ name: 'blank', run: async () => {} })
  const mill = millrace({ store: `sqlite:${file}`, tasks: [blank] })
  await mill.depths()
  return {
    enqueue: (input) => mill.enqueue(blank, input),
    enqueueMany: (inputs) => mill.enqueueMany(blank, inputs),
    work: async (jobs) => void (await workedOff(mill, jobs, 100)),
    close: () => mill.close(),
  }
}
