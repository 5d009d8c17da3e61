/**
 * bee-queue as published, with the settings that its documentation recommends for speed. Completed jobs are removed.
 */

import BeeQueue from 'bee-queue'
import type { Contender, OpenContender } from './contender.js'

/** bee-queue's advice: no shorter than its own stall interval. */
const stalledCheckMs = 5_000

export const open: OpenContender = async (url, queues): Promise<Contender> => {
  const { hostname, port } = new URL(url)
  const settings = {
    redis: { host: hostname, port: Number(port) },
    getEvents: false,
    sendEvents: false,
    storeJobs: false,
    removeOnSuccess: true,
  }
  const names = Array.from({ length: queues }, (_, index) => `queue-${index}`)
  const queue = new BeeQueue(names[0]!, { ...settings, isWorker: false })
  await queue.ready()
  const workers: BeeQueue[] = []
  return {
    enqueue: (input) => queue.createJob(input).save(),
    async enqueueMany(inputs) {
      const [error] = (await queue.saveAll(inputs.map((input) => queue.createJob(input)))).values()
      if (error !== undefined) throw error
    },
    async work({ concurrency, started, completed }) {
      for (const name of names) {
        const worker = new BeeQueue(name, settings)
        await worker.ready()
        worker.on('succeeded', completed)
        worker.on('error', (error) => console.error(error))
        worker.process(concurrency, async ({ data }) => started(data))
        await worker.checkStalledJobs(stalledCheckMs)
        workers.push(worker)
      }
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.close()))
      await queue.close()
    },
  }
}
