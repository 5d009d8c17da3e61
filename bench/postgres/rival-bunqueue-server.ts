/**
 * bunqueue as published, on Postgres: a server of its own, as it asks for there, and its client for Bun. Runs only on Bun. Its server
 * counts as part of this process, and is started and stopped outside the measures.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, loopback } from '#src/store-testing/servers/free-port.js'
import { GuardedProcess } from '#src/store-testing/servers/guarded-process.js'
import { type BunWorker, bunqueueServer, loadBunqueue } from '../contenders/bunqueue-package.js'
import type { Contender, OpenContender } from '../contenders/contender.js'

const name = 'blank'
const opts = { removeOnComplete: true }

export const open: OpenContender = async (url): Promise<Contender> => {
  const { Queue, Worker } = await loadBunqueue()
  const { port, stop } = await startServer(url)
  const connection = { host: loopback, port }
  const queue = new Queue(name, { connection })
  await queue.waitUntilReady()
  const workers: BunWorker[] = []
  return {
    enqueue: (data) => queue.add(name, data, opts),
    enqueueMany: (inputs) => queue.addBulk(inputs.map((data) => ({ name, data, opts }))),
    async work({ concurrency, started, completed }) {
      const worker = new Worker(name, async ({ data }) => started(data), {
        connection,
        concurrency,
        // As its documentation has it for many jobs.
        batchSize: 100,
        pollTimeout: 5_000,
      })
      worker.on('completed', completed)
      worker.on('error', (error) => console.error(error))
      workers.push(worker)
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.close()))
      await queue.disconnect()
      await stop()
    },
  }
}

async function startServer(url: string): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const [port, httpPort] = [await freePort(), await freePort()]
  const directory = await mkdtemp(join(tmpdir(), 'millrace-bench-bunqueue-'))
  const [path, ...args] = bunqueueServer
  const server = new GuardedProcess({
    path,
    args: [...args, 'start'],
    directory,
    env: {
      BUNQUEUE_POSTGRES_URL: url,
      HOST: loopback,
      TCP_PORT: String(port),
      HTTP_PORT: String(httpPort),
      // By default it takes 10,000 calls a minute from a client.
      RATE_LIMIT_MAX_REQUESTS: '1000000000',
    },
  })
  await server.said(/TCP .*:\d+/, 30_000)
  return {
    port,
    async stop() {
      server.kill('SIGTERM')
      await server.ended
      await rm(directory, { recursive: true })
    },
  }
}
