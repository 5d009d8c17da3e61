/**
 * graphile-worker as published. Its event for a completed job comes before the completion is stored: a measure ends a moment
 * too soon, in its favour.
 */

import type { Contender, OpenContender } from '../contenders/contender.js'
import { rival } from './postgres-contenders.js'

/** The parts of the package that are used here. */
interface GraphileWorker {
  makeWorkerUtils(options: object): Promise<{
    migrate(): Promise<void>
    addJob(task: string, payload: unknown): Promise<unknown>
    addJobs(jobs: readonly { identifier: string; payload: unknown }[]): Promise<unknown>
    release(): Promise<void>
  }>
  run(options: object): Promise<{
    events: { on(event: 'job:complete', listener: () => void): void }
    stop(): Promise<void>
  }>
  Logger: new (factory: () => () => void) => object
}

interface Driver {
  Pool: new (
    options: object,
  ) => {
    on(event: 'error', listener: () => void): void
    on(event: 'connect', listener: (client: { on(event: 'error', listener: () => void): void }) => void): void
    end(): Promise<void>
  }
}

const { makeWorkerUtils, run, Logger } = rival('graphile-worker') as GraphileWorker
const { Pool } = rival('pg') as Driver
const silent = new Logger(() => () => {})
const identifier = 'blank'

/** As its documentation recommends for many short jobs. */
export const batched = opening({ localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 })
/** As it begins: a trip for each job, and another for its completion. */
export const single = opening({})

function opening(worker: object): OpenContender {
  return async (connectionString): Promise<Contender> => {
    // As many connections as it would open itself; this pool can be ended, and survives the end of its database.
    const pgPool = new Pool({ connectionString, max: 10 })
    pgPool.on('error', () => {})
    pgPool.on('connect', (client) => client.on('error', () => {}))
    const utils = await makeWorkerUtils({ pgPool, logger: silent })
    await utils.migrate()
    const runners: Awaited<ReturnType<typeof run>>[] = []
    return {
      enqueue: (payload) => utils.addJob(identifier, payload),
      enqueueMany: (inputs) => utils.addJobs(inputs.map((payload) => ({ identifier, payload }))),
      async work({ concurrency, started, completed }) {
        const runner = await run({
          pgPool,
          logger: silent,
          concurrency,
          noHandleSignals: true,
          taskList: { [identifier]: async (payload: unknown) => started(payload) },
          preset: { worker: { ...worker, concurrentJobs: concurrency } },
        })
        runner.events.on('job:complete', completed)
        runners.push(runner)
      },
      async close() {
        await Promise.all(runners.map((runner) => runner.stop()))
        await utils.release()
        await pgPool.end()
      },
    }
  }
}
