/** Foreign hands: what operators do to a Redis under load — keys of another type, everything thrown away, a slot moved. */

import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, type EventMap, millrace } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { StoreCorruptError } from '#src/core/errors.js'
import { Traffic, type Verdict } from './traffic.js'

/** A key of the wrong type lies where one queue keeps its jobs; workers serve it, another queue, and both. */
export async function foreignKey() {
  const server = await startRedis()
  const tasks = ['good', 'bad'].map((queue) => defineTask({ name: queue, queue, run: () => {} }))
  const [good, bad] = tasks as [(typeof tasks)[0], (typeof tasks)[0]]
  const mills = [0, 1].map(() => millrace({ store: server.url, namespace: 'drill', tasks }))
  const [healthy, sick] = mills as [(typeof mills)[0], (typeof mills)[0]]
  try {
    const failed: EventMap['worker.failed'][] = []
    for (const mill of mills) mill.on('worker.failed', (event) => failed.push(event))
    await Promise.all(mills.map((mill) => mill.depths()))
    await server.ask('SET', '{drill:bad}:ready', 'x')
    const error = await healthy.enqueue(bad, 1, { priority: 1 }).catch((error: unknown) => error)
    // It serves both, and leaves the damaged one out.
    await healthy.worker().start()
    const sickWorker = sick.worker({ queues: ['bad'] })
    await sickWorker.start()
    const ended = await sickWorker.finished().catch((error: unknown) => error)
    const done = new Promise((resolve) => healthy.on('job.completed', resolve))
    await healthy.enqueue(good, 1)
    await done
    return {
      enqueueIsCorrupt: error instanceof StoreCorruptError,
      workerIsCorrupt: ended instanceof StoreCorruptError,
      isNamed: [error, ended].every((one) => /queue 'bad'.*'\{drill:bad\}:ready'/.test((one as Error).message)),
      message: (ended as Error).message,
      workersFailed: failed.length,
      isUntouched: (await server.ask('GET', '{drill:bad}:ready')) === 'x',
    }
  } finally {
    await Promise.all(mills.map((mill) => mill.close()))
    await server.stop()
  }
}

/** Everything is thrown away under producers and workers. */
export async function thrownAway(plan: { readonly times: number }) {
  const server = await startRedis()
  const traffic = await Traffic.start({ url: server.url, jobMs: 100 })
  try {
    let gone = 0
    let storeFailed = 0
    traffic.consumer.on('settle.refused', ({ answer }) => {
      if (answer === 'gone') gone += 1
    })
    traffic.consumer.on('store.failed', () => {
      storeFailed += 1
    })
    const resumedMs: number[] = []
    for (let i = 0; i < plan.times; i += 1) {
      await delay(300)
      await server.ask('FLUSHALL')
      const [claimed] = await Promise.all([traffic.claimed(), traffic.accepted()])
      resumedMs.push(Math.round(claimed))
    }
    const { refused, workersFailed, acknowledged } = await traffic.verdict()
    return { resumedMs, gone, storeFailed, refused, workersFailed, acknowledged }
  } finally {
    await traffic.close()
    await server.stop()
  }
}

export interface MovedOutcome extends Verdict {
  /** How long each move took, keys and all. */
  readonly movedMs: readonly number[]
  /** From the end of the move to the next claim that brings jobs. */
  readonly resumedMs: readonly number[]
}

/** The slot of the queue moves between the masters of a cluster, one key at a time. */
export async function movedSlot(plan: { readonly moves: number; readonly stepMs: number }): Promise<MovedOutcome> {
  const cluster = await startRedis({ mode: 'cluster' })
  const traffic = await Traffic.start({ url: cluster.url })
  try {
    const slot = Number(await cluster.servers[0]!.ask('CLUSTER', 'KEYSLOT', '{drill:default}'))
    const movedMs: number[] = []
    const resumedMs: number[] = []
    for (let i = 0; i < plan.moves; i += 1) {
      const from = await cluster.masterOf(slot)
      const to = cluster.servers.find((server) => server !== from)!
      const startedAt = performance.now()
      for await (const _ of cluster.moveSlot(slot, from, to, { batch: 1 })) await delay(plan.stepMs)
      movedMs.push(Math.round(performance.now() - startedAt))
      resumedMs.push(Math.round(await traffic.claimed()))
      await traffic.accepted()
      await delay(200)
    }
    return { movedMs, resumedMs, ...(await traffic.verdict()) }
  } finally {
    await traffic.close()
    await cluster.stop()
  }
}
