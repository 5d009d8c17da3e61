/**
 * Proof: however the process of a long job ends, the job is soon where it belongs. That holds for processes that must
 * not outlive their worker, for cancelled ones, for those that die, and for lost machines. An idle listener gets a new
 * job at once.
 */

import { type Mill, millrace } from 'millrace'
import { faultProxy, startRedis } from 'millrace/store-testing'
import type { Report, Summary } from '../report.js'
import { cancels, dyings, exits, lostHosts, pickUps, stops } from './long-ends.js'
import { LongSite } from './long-site.js'

export const seed = 0

const rounds = 10
const cuts = 100
const lostRounds = 5
const stopRounds = 5
const dyingEach = 5
const pickUpCount = 300
const [leaseMs, graceMs] = [3_000, 5_000]

export async function prove(report: Report): Promise<Summary> {
  const figures: Record<string, unknown> = {}
  for (const name of ['SQLite', 'Redis'] as const) {
    // Each drill reads the counts of a server of its own.
    const exited = await onOwn(name, (store) => exits(rounds, store))
    report.claim(
      `${name}: with its worker a process is dead within 1 s (${most(exited.deadMs)} of ${rounds}), its job redelivered, uncounted`,
      Math.max(...exited.deadMs) <= 1_000 &&
        exited.begun === 2 * rounds &&
        exited.processed === rounds &&
        exited.failed === 0,
    )
    const cancelled = await onOwn(name, (store) => cancels(rounds, store))
    report.claim(
      `${name}: cancelled, a group that heeds nothing is dead within grace + 1 s of being told (${most(cancelled.fromAbort)}), and so much and a third of the lease after the call (${most(cancelled.fromCall)})`,
      Math.max(...cancelled.fromAbort) <= graceMs + 1_000 &&
        Math.max(...cancelled.fromCall) <= leaseMs / 3 + graceMs + 1_000 &&
        cancelled.fromAbort.length === rounds / 2 &&
        cancelled.running + cancelled.processed + cancelled.failed + cancelled.dead === 0,
    )
    const died = await onOwn(name, (store) => dyings(dyingEach, store))
    report.claim(
      `${name}: each death by SIGKILL, SIGSEGV, lack of memory, exit and timer is a counted failure with its reason, and the last leads to the morgue (${died.told} of ${died.jobs})`,
      died.told === died.jobs && died.dead === died.jobs && died.failed === 2 * died.jobs && died.running === 0,
    )
    const lost = await onOwn(name, (store) => lostHosts(lostRounds, store))
    report.claim(
      `${name}: a job of a lost machine is begun elsewhere within its lease and 5 s (${most(lost.againMs)}), and has not failed`,
      Math.max(...lost.againMs) <= leaseMs + 5_000 && lost.processed === lostRounds && lost.failed === 0,
    )
    const stopped = await onOwn(name, (store) => stops(stopRounds, store))
    report.claim(
      `${name}: a process that is stopped is dead within its lease and 1 s (${most(stopped.deadMs)}), and its slot has been given another job by then (${most(stopped.slotMs)})`,
      Math.max(...stopped.slotMs) <= leaseMs + 1_000,
    )
    report.claim(
      `${name}: it has ended before its job is begun again (${stopped.aheadMs.filter((ms) => ms >= 0).length} of ${stopRounds}); one whose worker is lost, when it wakes up (${most(stopped.awakeMs)})`,
      Math.min(...stopped.aheadMs) >= 0 &&
        Math.max(...stopped.awakeMs) <= 250 &&
        stopped.processed === 3 * stopRounds &&
        stopped.failed === 0,
    )
    Object.assign(figures, { [name]: { exited, cancelled, died, lost, stopped } })
  }
  figures['pickUps'] = { SQLite: await onSqlite(report), ...(await onRedis(report)) }
  return figures
}

async function onSqlite(report: Report): Promise<Summary> {
  const site = new LongSite('3s')
  const mill = listening(site.store)
  try {
    return told(report, 'SQLite', await settledPickUps(site, mill))
  } finally {
    await mill.close()
    await site.close()
  }
}

/** The listener is also measured after its connection was cut again and again. */
async function onRedis(report: Report): Promise<Summary> {
  const redis = await startRedis()
  const proxy = await faultProxy({ port: Number(new URL(redis.url).port) })
  const site = new LongSite('3s', redis.url)
  const [direct, cut] = [listening(redis.url), listening(proxy.url)]
  try {
    const whole = await settledPickUps(site, direct)
    await direct.close()
    const listener = cut.listener('long')
    await pickUps(site, listener, 10)
    const [first, later]: [number[], number[]] = [[], []]
    for (let i = 0; i < cuts; i += 1) {
      proxy.cut()
      first.push(...(await pickUps(site, listener, 1)))
      later.push(...(await pickUps(site, listener, 3)))
    }
    return {
      Redis: told(report, 'Redis', whole),
      afterCuts: {
        first: told(report, 'Redis, enqueued 20 ms after its connection was cut', first),
        later: told(report, 'Redis, once its connection was cut and is back', later),
      },
    }
  } finally {
    await Promise.all([direct.close(), cut.close()])
    await site.close()
    await proxy.close()
    await redis.stop()
  }
}

/** Times of a listener that has opened its store. */
async function settledPickUps(site: LongSite, mill: Mill): Promise<number[]> {
  const listener = mill.listener('long')
  await pickUps(site, listener, 10)
  return pickUps(site, listener, pickUpCount)
}

function listening(store: string): Mill {
  return millrace({ store, queues: { long: { lease: '3s' } } })
}

function told(report: Report, where: string, unsorted: readonly number[]): Summary {
  const ms = unsorted.toSorted((a, b) => a - b)
  const at = (share: number) => Number(ms[Math.floor((ms.length - 1) * share)]!.toFixed(1))
  const figures = { jobs: ms.length, median: at(0.5), p95: at(0.95), p99: at(0.99), longest: at(1) }
  report.say(`${where}: next() of an idle listener, ms from the enqueue: ${JSON.stringify(figures)}`)
  report.claim(`${where}: 99 of 100 are there within 50 ms`, figures.p99 <= 50)
  return figures
}

async function onOwn<T>(name: 'SQLite' | 'Redis', drill: (store: string | undefined) => Promise<T>): Promise<T> {
  if (name === 'SQLite') return drill(undefined)
  const redis = await startRedis()
  try {
    return await drill(redis.url)
  } finally {
    await redis.stop()
  }
}

function most(ms: readonly number[]): string {
  return `at most ${Math.round(Math.max(...ms))} ms`
}
