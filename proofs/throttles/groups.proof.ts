/**
 * Proof: a claim with a million groups costs little more than a claim with ten. Once their window has passed and claims
 * continue, the groups cost nothing. The remains of shut groups delay nobody.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { startRedis } from 'millrace/store-testing'
import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import type { Store } from '#src/stores/contract/store.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { listIn, numberIn, textIn } from '#src/stores/redis/client/redis-reply.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import type { Report, Summary } from '../report.js'

export const seed = 0

const many = 1_000_000
const few = 10
/** For ten groups, enough jobs to show the cost of one job. */
const jobsOf = (groups: number) => Math.max(groups, 200_000)
const perCall = 250
/** The size of a claim of a worker with ten slots, and the number of jobs claimed in that way. */
const slots = 10
const claimedBySlots = 100_000
const windowMs = 5_000
const furtherClaims = 10_000
/** Groups that have started all they may, with jobs that wait for their next window. */
const shutGroups = 100_000
/** No group comes near this limit. The proof measures the cost of counting. */
const throttle = {
  scope: 'sites',
  by: 'group',
  rules: [{ limit: 1_000_000, windowMs, moderate: false }],
} as const

interface Subject {
  readonly store: Store
  /** The amount that the store keeps, in bytes or rows. */
  kept(): Promise<number>
  close(): Promise<void>
}

interface Costs {
  /** The cost of a claim and a settle per job, for claims of ten jobs. */
  readonly usPerJob: number
  /** The same for claims of 250 jobs, which visit 250 groups, or ten. */
  readonly usInBulk: number
  readonly keptBefore: number
  readonly keptAfter: number
}

export async function prove(report: Report): Promise<Summary> {
  const figures: Record<string, unknown> = {}
  for (const [name, open, unit] of [
    ['Redis', redisSubject, 'bytes'],
    ['SQLite', sqliteSubject, 'rows for groups'],
  ] as const) {
    const [ten, million] = [await costsOf(await open(), few), await costsOf(await open(), many)]
    for (const [groups, { usPerJob, usInBulk, keptBefore, keptAfter }] of [
      [few, ten],
      [many, million],
    ] as const)
      report.say(
        `${name}, ${groups} groups: ${usPerJob.toFixed(1)} µs a job in claims of ${slots}, ${usInBulk.toFixed(1)} in claims of ${perCall}; ${keptBefore} ${unit} kept when all had run, ${keptAfter} after their window and ${furtherClaims} claims`,
      )
    const ratio = million.usPerJob / ten.usPerJob
    report.claim(
      `${name}: a job of one in a million groups costs at most twice that of one in ten (${ratio.toFixed(2)})`,
      ratio <= 2,
    )
    const left = million.keptAfter / Math.max(1, ten.keptAfter)
    report.claim(`${name}: groups that are idle are forgotten (${left.toFixed(3)} of ten groups)`, left <= 1.1)
    const [alone, leaving] = [await firstsOf(await open(), 1), await firstsOf(await open(), 2)]
    const behind = leaving / alone
    report.say(
      `${name}, ${shutGroups} groups of one start an hour: ${alone.toFixed(1)} µs a first job, ${leaving.toFixed(1)} where each leaves a second one behind`,
    )
    report.claim(
      `${name}: the first job of a group costs at most twice as much where ${shutGroups} groups leave another behind (${behind.toFixed(2)})`,
      behind <= 2,
    )
    figures[name] = { ten, million, ratio, left, alone, leaving, behind }
  }
  return figures
}

async function costsOf(subject: Subject, groups: number): Promise<Costs> {
  const { store } = subject
  try {
    await store.open([{ name: 'crawl', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, throttle }])
    const jobs = jobsOf(groups)
    await enqueue(store, jobs, groups, 0)
    const usPerJob = await usOf(store, claimedBySlots, slots)
    const usInBulk = await usOf(store, jobs - claimedBySlots, perCall)
    const keptBefore = await subject.kept()
    await delay(windowMs + 100)
    await enqueue(store, furtherClaims, few, jobs)
    for (let i = 0; i < furtherClaims; i += 1) await claimSome(store, 1)
    // In both runs, the ten groups are still in their window.
    return { usPerJob, usInBulk, keptBefore, keptAfter: await subject.kept() }
  } finally {
    await subject.close()
  }
}

/** µs per job for the first jobs of all groups. Each group has this number of jobs and may start one in an hour. */
async function firstsOf(subject: Subject, jobsEach: number): Promise<number> {
  const { store } = subject
  try {
    const rules = [{ limit: 1, windowMs: 3_600_000, moderate: false }]
    const hourly = { ...throttle, rules }
    await store.open([{ name: 'crawl', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, throttle: hourly }])
    await enqueue(store, shutGroups * jobsEach, shutGroups, 0)
    const us = await usOf(store, shutGroups, slots)
    if ((await claimSome(store, slots)) > 0) throw new Error('a group has started two jobs in its hour')
    return us
  } finally {
    await subject.close()
  }
}

async function usOf(store: Store, jobs: number, limit: number): Promise<number> {
  const startedAt = performance.now()
  for (let left = jobs; left > 0; ) left -= await claimSome(store, Math.min(limit, left))
  return ((performance.now() - startedAt) * 1_000) / jobs
}

async function enqueue(store: Store, count: number, groups: number, from: number): Promise<void> {
  for (let n = 0; n < count; n += perCall) {
    const jobs = Array.from({ length: Math.min(perCall, count - n) }, (_, i) => {
      const number = from + n + i
      return { id: String(number), task: 'it', payload: '1', priority: 0, rememberMs: 0, group: `g${number % groups}` }
    })
    await store.enqueue([{ callId: `call-${from + n}`, queue: 'crawl', jobs }])
  }
}

async function claimSome(store: Store, limit: number): Promise<number> {
  const { claims } = await store.claim([{ queue: 'crawl', limit }], { worker: 'w', leaseMs: 60_000 })
  await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const })))
  return claims.length
}

async function redisSubject(): Promise<Subject> {
  const server = await startRedis()
  const client = openRedisClient(redisAddress(server.url))
  const store = new RedisStore({ client: openRedisClient(redisAddress(server.url)), namespace: 'groups' })
  return {
    store,
    async kept() {
      const keys = listIn(await client.command('KEYS', ['*'])).map(textIn)
      const sizes = await Promise.all(keys.map((key) => client.command('MEMORY', ['USAGE', key, 'SAMPLES', '0'])))
      return sizes.map(numberIn).reduce((sum, size) => sum + size, 0)
    },
    async close() {
      await store.close()
      await client.close()
      await server.stop()
    },
  }
}

async function sqliteSubject(): Promise<Subject> {
  const harness = await sqliteHarness()
  const file = `${harness.file}-groups`
  const store = new SqliteStore({ file })
  const openDatabase = await loadDriver()
  return {
    store,
    async kept() {
      const db = openDatabase(file)
      // The starts themselves are not counted: how many of them the window sees depends on the speed of the machine.
      const counted = ['* FROM lane', '* FROM throttle_counter', 'DISTINCT tid FROM throttle_start'].map((rows) => {
        return Number((db.prepare(`SELECT count(*) AS n FROM (SELECT ${rows})`).get() as { n: number }).n)
      })
      db.close()
      return counted.reduce((sum, n) => sum + n, 0)
    },
    async close() {
      await store.close()
      await harness.close()
    },
  }
}
