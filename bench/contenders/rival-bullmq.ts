/** BullMQ as published, on Redis and on Postgres. It keeps as little as Millrace: completed jobs are removed. */

import { createPostgresBackend, Queue, Worker, withBackend } from 'bullmq'
import type { Contender, OpenContender } from './contender.js'

const jobName = 'blank'

export const open: OpenContender = (url, queues) => {
  const { hostname, port } = new URL(url)
  const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null }
  return opened({ Queue, Worker }, connection, queues)
}

/** Its queue and its worker have pools of ten connections, as they begin. */
export const openPostgres: OpenContender = (connectionString, queues) =>
  opened(withBackend(createPostgresBackend), { connectionString, migrate: true }, queues)

/** The parts of both kinds of classes that are used here. */
interface Classes {
  Queue: new (name: string, options: { connection: never; defaultJobOptions: object }) => Queue
  Worker: new (
    name: string,
    run: (job: { data: unknown }) => Promise<void>,
    options: { connection: never; concurrency: number },
  ) => Worker
}

async function opened(classes: object, options: object, queues: number): Promise<Contender> {
  const { Queue, Worker } = classes as Classes
  const connection = options as never
  const names = Array.from({ length: queues }, (_, index) => `queue-${index}`)
  const queue = new Queue(names[0]!, { connection, defaultJobOptions: { removeOnComplete: true } })
  let isClosed = false
  // Its connections to Postgres are still there for a moment when it has closed, and the next measure drops their database.
  const complain = (error: unknown) => isClosed || console.error(error)
  queue.on('error', complain)
  await queue.waitUntilReady()
  const workers: Worker[] = []
  return {
    enqueue: (data) => queue.add(jobName, data),
    enqueueMany: (inputs) => queue.addBulk(inputs.map((data) => ({ name: jobName, data }))),
    async work({ concurrency, started, completed }) {
      for (const name of names) {
        const worker = new Worker(name, async ({ data }) => started(data), { connection, concurrency })
        worker.on('completed', completed)
        worker.on('error', complain)
        workers.push(worker)
      }
      await Promise.all(workers.map((worker) => worker.waitUntilReady()))
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.close()))
      await queue.close()
      isClosed = true
    },
  }
}
