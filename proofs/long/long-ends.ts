/** The ends of long work: each way in which the process of a job can end, and how soon the job is where it belongs. */

import { setTimeout as delay } from 'node:timers/promises'
import type { JobHandle, QueueListener } from 'millrace'
import { livingIn } from '../../test/process-group.js'
import type { Work } from '../workers/supervised.js'
import { bound, deaf, dying, LongSite, steady } from './long-site.js'

const resultWithin = { timeout: '60s' } as const

/** Ms until all processes of the group are dead. */
async function deadAfter(group: number): Promise<number> {
  const startedAt = performance.now()
  while (livingIn(group).length > 0) await delay(10)
  return performance.now() - startedAt
}

function pidOf(work: Work): number {
  return work.said('worker.started').at(-1)!['pid'] as number
}

/** Kills the supervisor first, because it would start another worker. */
function killWhole(work: Work): void {
  work.signal('SIGKILL')
  process.kill(pidOf(work), 'SIGKILL')
}

async function counts(site: LongSite) {
  const [depth] = await site.mill.depths(['long'])
  const { running, processed, failed, crashed, dead } = depth!
  return { running, processed, failed, crashed, dead }
}

/**
 * Kills workers whose jobs must not outlive them: ms until each job's process was dead, and the counts of the queue.
 */
export async function exits(rounds: number, store: string | undefined) {
  const site = new LongSite('3s', store)
  try {
    const deadMs: number[] = []
    for (let i = 0; i < rounds; i += 1) {
      const work = await site.work([])
      const job = await site.mill.enqueue(bound, 1_500)
      const [begun] = (await site.written('begun', 2 * i + 1)).slice(-1)
      killWhole(work)
      deadMs.push(await deadAfter(begun!.pid))
      const next = await site.work([])
      await job.result(resultWithin)
      await next.stop()
    }
    return { deadMs, begun: site.entries().filter(({ what }) => what === 'begun').length, ...(await counts(site)) }
  } finally {
    await site.close()
  }
}

/**
 * Cancels jobs that ignore everything, every second one with a blocked loop: ms until each was dead, from the call and
 * from the abort.
 */
export async function cancels(rounds: number, store: string | undefined) {
  const site = new LongSite('3s', store)
  try {
    await site.work([])
    const [fromCall, fromAbort]: [number[], number[]] = [[], []]
    for (let i = 0; i < rounds; i += 1) {
      const job = await site.mill.enqueue(deaf, i % 2 === 1)
      const { pid } = (await site.written('begun', i + 1)).at(-1)!
      const calledAt = Date.now()
      await job.cancel('not wanted')
      await deadAfter(pid)
      fromCall.push(Date.now() - calledAt)
      const told = site.entries().find(({ what, id }) => what === 'told' && id === job.id)
      if (told !== undefined) fromAbort.push(Date.now() - told.at)
    }
    while ((await counts(site)).running > 0) await delay(20)
    return { fromCall, fromAbort, ...(await counts(site)) }
  } finally {
    await site.close()
  }
}

export const deaths = {
  SIGKILL: /SIGKILL/,
  SIGSEGV: /SIGSEGV/,
  oom: /memory/,
  exit: /exit code 0|code 0/,
  timer: /in a timer/,
}

/** Jobs that die in each way, with one retry: how many are in the morgue with that reason as their error. */
export async function dyings(each: number, store: string | undefined) {
  const site = new LongSite('3s', store)
  try {
    await site.work(['--concurrency', '2'])
    const jobs: [RegExp, JobHandle][] = []
    for (const [how, error] of Object.entries(deaths))
      for (let i = 0; i < each; i += 1) jobs.push([error, await site.mill.enqueue(dying, how)])
    let told = 0
    for (const [error, job] of jobs) {
      await job.result(resultWithin).catch(() => {})
      const record = await job.record()
      if (record?.state === 'dead' && error.test(record.error ?? '')) told += 1
    }
    return { jobs: jobs.length, told, ...(await counts(site)) }
  } finally {
    await site.close()
  }
}

/** Loses a machine that runs a job, next to another machine: ms until the other has begun the job. */
export async function lostHosts(rounds: number, store: string | undefined) {
  const site = new LongSite('3s', store)
  try {
    const againMs: number[] = []
    for (let i = 0; i < rounds; i += 1) {
      const lost = await site.work([], { MILLRACE_HOST: 'lost' })
      const job = await site.mill.enqueue(steady, 5_000)
      const { pid } = (await site.written('begun', 2 * i + 1)).at(-1)!
      const rival = await site.work([], { MILLRACE_HOST: 'elsewhere' })
      const lostAt = Date.now()
      process.kill(-pid, 'SIGKILL')
      killWhole(lost)
      const again = (await site.written('begun', 2 * i + 2)).at(-1)!
      againMs.push(again.at - lostAt)
      await job.result(resultWithin)
      await rival.stop()
    }
    return { againMs, ...(await counts(site)) }
  } finally {
    await site.close()
  }
}

/**
 * Stops processes, first under their worker, then after the worker was lost. Returns ms from the stop until a watched
 * process was dead, until its slot had a process for another job, and between its end and the next begin of its job.
 * For an unwatched process: ms that it still lived after it woke up and its job had begun elsewhere.
 */
export async function stops(rounds: number, store: string | undefined) {
  const site = new LongSite('3s', store)
  try {
    const [deadMs, slotMs, aheadMs, awakeMs]: [number[], number[], number[], number[]] = [[], [], [], []]
    const begins = () => site.entries().filter(({ what }) => what === 'begun').length
    const begun = async (more: 1 | 2) => (await site.written('begun', begins() + more)).slice(-more)
    for (let i = 0; i < rounds; i += 1) {
      const work = await site.work(['--concurrency', '1'], { MILLRACE_HOST: 'watching' })
      const job = await site.mill.enqueue(steady, 500)
      const { pid } = (await begun(1))[0]!
      const others = begun(2)
      await site.halt(pid)
      const stoppedAt = Date.now()
      const waiting = await site.mill.enqueue(steady, 500)
      await deadAfter(pid)
      const deadAt = Date.now()
      const [again, next] = [job, waiting].map(async ({ id }) => (await others).find((begin) => begin.id === id)!)
      deadMs.push(deadAt - stoppedAt)
      slotMs.push((await next!).bornAt - stoppedAt)
      aheadMs.push((await again!).at - deadAt)
      await Promise.all([job.result(resultWithin), waiting.result(resultWithin)])
      await work.stop()
    }
    for (let i = 0; i < rounds; i += 1) {
      const work = await site.work(['--concurrency', '1'], { MILLRACE_HOST: 'lost' })
      const job = await site.mill.enqueue(steady, 5_000)
      const { pid } = (await begun(1))[0]!
      await site.halt(pid)
      killWhole(work)
      const again = begun(1)
      const rival = await site.work(['--concurrency', '1'], { MILLRACE_HOST: 'elsewhere' })
      await again
      process.kill(-pid, 'SIGCONT')
      awakeMs.push(await deadAfter(pid))
      await job.result(resultWithin)
      await rival.stop()
    }
    return { deadMs, slotMs, aheadMs, awakeMs, ...(await counts(site)) }
  } finally {
    await site.close()
  }
}

/** Ms from each enqueue to the `next()` of an idle listener, in their order. */
export async function pickUps(site: LongSite, listener: QueueListener, count: number): Promise<number[]> {
  const ms: number[] = []
  for (let i = 0; i < count; i += 1) {
    const next = listener.next()
    await delay(20)
    const from = performance.now()
    await site.mill.enqueue(steady, i)
    const claim = await next
    ms.push(performance.now() - from)
    await claim.complete()
  }
  return ms
}
