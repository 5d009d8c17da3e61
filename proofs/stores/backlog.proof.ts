/**
 * Proof: on SQLite a backlog delays no other queue. With a hundred thousand groups whose limit is used up, another
 * queue of the file is as fast as in an empty file. A million jobs that are due at one moment are claimed, and cleared,
 * at full speed.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Claim } from '#src/stores/contract/claim.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { Store } from '#src/stores/contract/store.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import type { Report, Summary } from '../report.js'

export const seed = 0

/** Use a value below 1 for a quick look, which proves nothing. */
const size = Number(process.env['MILLRACE_PROOF_SIZE'] ?? 1)
const groups = Math.ceil(100_000 * size)
const inOneGroup = Math.ceil(200_000 * size)
const dueAtOnce = Math.ceil(1_000_000 * size)
/** The rate of claims is measured on these jobs. */
const timed = Math.ceil(dueAtOnce / 4)
const perCall = 250
/** The claim of a worker with ten slots. */
const slots = 10
/** Claimants that ask at the same time. */
const claimants = 16
const probes = 200

const plain = { kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
const sites: QueueSettings = {
  ...plain,
  name: 'sites',
  throttle: { scope: 'sites', by: 'group', rules: [{ limit: 1, windowMs: 3_600_000, moderate: false }] },
}
const other: QueueSettings = { ...plain, name: 'other' }
const mails: QueueSettings = { ...plain, name: 'mails' }
const by = { worker: 'worker', leaseMs: 600_000 }

export async function prove(report: Report): Promise<Summary> {
  const shut = await shutGroups(report)
  const due = await dueTogether(report)
  return { size, ...shut, ...due }
}

async function shutGroups(report: Report) {
  const emptyMs = await inFile([other], async (open) => median(await latencies(open(), open())))
  const { startedMs, fullMs, started } = await inFile([sites, other], async (open) => {
    const [store, producer, consumer] = [open(), open(), open()]
    // The second jobs of the groups are behind all first jobs, and remain.
    for (const nth of [1, 2]) await enqueue(store, 'sites', groups, (i) => ({ id: `${nth}-${i}`, group: `group-${i}` }))
    await enqueue(store, 'sites', inOneGroup, (i) => ({ id: `one-${i}`, group: 'one' }))
    let started = 0
    const startedAt = performance.now()
    const claimant = async () => {
      for (;;) {
        const claims = await claimOf(store, 'sites', slots)
        if (claims.length === 0) break
        started += claims.length
        await complete(store, claims)
      }
    }
    const starting = Promise.all(Array.from({ length: claimants }, claimant)).then(() => performance.now() - startedAt)
    const meanwhile = await latencies(producer, consumer)
    const startedMs = await starting
    return { started, startedMs, fullMs: [median(meanwhile), median(await latencies(producer, consumer))] as const }
  })
  const [duringMs, afterMs] = fullMs
  report.say(
    `${groups} groups of 2 jobs and one of ${inOneGroup}, limit 1 in 1h each: first jobs started in ${(startedMs / 1_000).toFixed(1)} s; another queue's job is claimed after ${duringMs.toFixed(2)} ms meanwhile, ${afterMs.toFixed(2)} ms when all is shut, ${emptyMs.toFixed(2)} ms in an empty file (p50 of ${probes})`,
  )
  report.claim(`each group has started one job (${started} of ${groups + 1})`, started === groups + 1)
  report.claim(`all first jobs are started in 30 s (${(startedMs / 1_000).toFixed(1)} s)`, startedMs <= 30_000)
  for (const [when, ms] of [
    ['while they start', duringMs],
    ['when all is shut', afterMs],
  ] as const) {
    const ratio = ms / emptyMs
    report.claim(
      `another queue waits at most twice as long as in an empty file, ${when} (${ratio.toFixed(2)})`,
      ratio <= 2,
    )
  }
  return { emptyMs, duringMs, afterMs, startedMs }
}

async function dueTogether(report: Report) {
  return inFile([mails], async (open) => {
    const store = open()
    const runAt = Date.now() + Math.ceil(120_000 * size)
    await enqueue(store, 'mails', dueAtOnce, (i) => ({ id: `mail-${i}`, runAt }))
    await delay(Math.max(0, runAt - Date.now()) + 1)
    const claimedAt = performance.now()
    let claimed = 0
    while (claimed < timed) {
      const count = (await claimOf(store, 'mails')).length
      if (count === 0) break
      claimed += count
    }
    const rate = claimed / ((performance.now() - claimedAt) / 1_000)
    await enqueue(store, 'mails', claimed, (i) => ({ id: `more-${i}`, runAt: Date.now() + 3_600_000 }))
    const clearedAt = performance.now()
    await store.records.clear('mails')
    let [depth] = (await store.depth(['mails'])).depths
    while (depth!.ready + depth!.scheduled > 0) {
      await store.records.clear('mails')
      depth = (await store.depth(['mails'])).depths[0]
    }
    const clearMs = performance.now() - clearedAt
    report.say(
      `${dueAtOnce} jobs due at one moment: ${claimed} claimed at ${rate.toFixed(0)}/s; ${dueAtOnce} cleared in ${(clearMs / 1_000).toFixed(1)} s`,
    )
    report.claim(`at least 30,000 are claimed a second (${rate.toFixed(0)})`, rate >= 30_000)
    report.claim(`they are cleared in 15 s (${(clearMs / 1_000).toFixed(1)} s)`, clearMs <= 15_000)
    return { rate, clearMs }
  })
}

/** Ms from the call that enqueues a job to the answer of the claim that gets it, by two handles, one job at a time. */
async function latencies(producer: Store, consumer: Store): Promise<number[]> {
  const found: number[] = []
  for (let i = 0; i < probes; i += 1) {
    const at = performance.now()
    await enqueue(producer, 'other', 1, () => ({ id: `probe-${at}` }))
    const claims = await claimOf(consumer, 'other')
    found.push(performance.now() - at)
    await complete(consumer, claims)
  }
  return found
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!
}

async function inFile<T>(queues: readonly QueueSettings[], run: (open: () => SqliteStore) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-backlog-'))
  const stores: SqliteStore[] = []
  const open = () => {
    const store = new SqliteStore({ file: join(folder, 'jobs.db') })
    stores.push(store)
    return store
  }
  try {
    await open().open(queues)
    return await run(open)
  } finally {
    for (const store of stores) await store.close()
    await rm(folder, { recursive: true, force: true })
  }
}

let calls = 0

async function enqueue(
  store: Store,
  queue: string,
  count: number,
  jobOf: (i: number) => Partial<NewJob> & { readonly id: string },
): Promise<void> {
  for (let from = 0; from < count; from += perCall) {
    const jobs = Array.from({ length: Math.min(perCall, count - from) }, (_, i) => ({
      ...{ task: 'work', payload: '{}', priority: 0, rememberMs: 0 },
      ...jobOf(from + i),
    }))
    await store.enqueue([{ callId: `call-${++calls}`, queue, jobs }])
  }
}

async function claimOf(store: Store, queue: string, limit = perCall): Promise<readonly Claim[]> {
  return (await store.claim([{ queue, limit }], by)).claims
}

async function complete(store: Store, claims: readonly Claim[]): Promise<void> {
  await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))
}
