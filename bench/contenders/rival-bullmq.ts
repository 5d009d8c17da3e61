/** BullMQ as published. It keeps as little as Millrace: completed jobs are removed. */

import { Queue, Worker } from 'bullmq'
import type { Contender, OpenContender } from './contender.js'

const jobName = 'blank'

export const open: OpenContender = async (url, queues): Promise<Contender> => {
  const { hostname, port } = new URL(url)
  const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null }
  const names = Array.from({ length: queues }, (_, index) => `queue-${index}`)
  const queue = new Queue(names[0]!, { connection, defaultJobOptions: { removeOnComplete: true } })
  await queue.waitUntilReady()
  const workers: Worker[] = []
  return {
    enqueue: (data) => queue.add(jobName, data),
    enqueueMany: (inputs) => queue.addBulk(inputs.map((data) => ({ name: jobName, data }))),
    async work({ concurrency, started, completed }) {
      for (const name of names) {
        const worker = new Worker(name, async ({ data }) => started(data), { connection, concurrency })
        worker.on('completed', completed)
        worker.on('error', (error) => console.error(error))
        workers.push(worker)
      }
      await Promise.all(workers.map((worker) => worker.waitUntilReady()))
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.close()))
      await queue.close()
    },
  }
}
