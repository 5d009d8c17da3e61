/**
 * pg-boss as published. A job counts as completed when its handler has returned, which is before that is stored: a measure ends a
 * moment too soon, in its favour.
 */

import { setImmediate as turn } from 'node:timers/promises'
import type { Contender, OpenContender } from '../contenders/contender.js'
import { rival } from './postgres-contenders.js'

/** The parts of the package that are used here. */
interface PgBoss {
  on(event: 'error', listener: (error: unknown) => void): void
  start(): Promise<unknown>
  createQueue(name: string): Promise<unknown>
  send(name: string, data: unknown): Promise<unknown>
  insert(name: string, jobs: readonly { data: unknown }[]): Promise<unknown>
  work(name: string, options: object, handler: (jobs: readonly { data: unknown }[]) => Promise<void>): Promise<unknown>
  stop(options: object): Promise<void>
}

const { PgBoss } = rival('pg-boss') as { PgBoss: new (options: object) => PgBoss }
const name = 'blank'

/** Two workers that take 250 jobs at once, without a pause while there are many. */
export const batched = opening(() => ({ batchSize: 250, localConcurrency: 2 }))
/** Workers that take ten jobs at once. */
export const tens = opening((concurrency) => ({ batchSize: 10, localConcurrency: Math.ceil(concurrency / 10) }))

function opening(batch: (concurrency: number) => object): OpenContender {
  return async (connectionString): Promise<Contender> => {
    const boss = new PgBoss({ connectionString, schedule: false })
    boss.on('error', (error) => console.error(error))
    await boss.start()
    await boss.createQueue(name)
    return {
      enqueue: (data) => boss.send(name, data),
      enqueueMany: (inputs) =>
        boss.insert(
          name,
          inputs.map((data) => ({ data })),
        ),
      async work({ concurrency, started, completed }) {
        const options = { ...batch(concurrency), burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }
        await boss.work(name, options, async (jobs) => {
          for (const { data } of jobs) started(data)
          await turn()
          for (const _ of jobs) completed()
        })
      },
      close: () => boss.stop({ graceful: true, close: true }),
    }
  }
}
