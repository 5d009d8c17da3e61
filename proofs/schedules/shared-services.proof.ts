/**
 * Proof: two services share a store and a queue, on SQLite and on Redis, for ten minutes (`SERVICES_MINUTES`) while both
 * are deployed again and again and replicas are killed. Every schedule of both ticks, each instant once. Of each tick that
 * was left out the cause is known: a table counts them by schedule and cause. No job waits for a worker of the other
 * service, and each service warns once of the other's tasks.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace, type ScheduleRecord } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { seededRandom } from '../../test/seeded-random.js'
import type { Report } from '../report.js'
import { type Service, SharedCrew, services } from './shared-crew.js'
import { jobOf, longestMs, queue, type ServiceWord } from './shared-service.js'
import { TickAccount } from './tick-account.js'

export const seed = 20_261_128

const minutes = Number(process.env['SERVICES_MINUTES'] ?? 10)
const lookMs = 50
const everyMs = 1_000
/** The time from one deploy or kill to the next. */
const eventMs = 7_000
/** A job that waits as long waits for somebody who cannot run it, or for the death of its worker. */
const longMs = 10_000

export async function prove(report: Report): Promise<unknown> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-shared-'))
  const redis = await startRedis()
  const stores = { sqlite: `sqlite:${join(folder, 'jobs.db')}`, redis: redis.url }
  const summary: Record<string, unknown> = { minutes }
  for (const [kind, store] of Object.entries(stores)) summary[kind] = await shared(report, kind, store)
  await redis.stop()
  rmSync(folder, { recursive: true, force: true })
  return summary
}

async function shared(report: Report, kind: string, store: string): Promise<unknown> {
  const random = seededRandom(seed)
  const account = new TickAccount(everyMs)
  const waits: number[] = []
  const ran = new Set<string>()
  let warnings = 0
  const crew = new SharedCrew(store, (word: ServiceWord) => {
    if (word.kind === 'started') {
      if (!ran.has(word.id)) waits.push(word.waitMs)
      ran.add(word.id)
    } else if (word.kind === 'tick') account.ticked(word.schedule, word.tickAt, word.id)
    else if (word.kind === 'left out') account.told(word.schedule, word.tickAt, word.ticks, word.reason)
    else if (word.kind === 'warned') warnings += 1
  })
  await crew.start()
  const tasks = services.map((service) => defineTask({ name: jobOf(service), queue }))
  const producer = millrace({ store: store as 'memory:', namespace: 'shared', tasks })
  const until = Date.now() + minutes * 60_000
  const enqueued: string[] = []
  const [looking, producing] = [
    looks(producer, until, account),
    (async () => {
      while (Date.now() < until) {
        for (const task of tasks) enqueued.push((await producer.enqueue(task, undefined)).id)
        await delay(100)
      }
    })(),
  ]
  while (Date.now() < until - eventMs) {
    await delay(eventMs)
    const service: Service = random() < 0.5 ? 'billing' : 'crm'
    if (random() < 0.6) await crew.deploy(service)
    else await crew.kill(service)
  }
  await Promise.all([looking, producing])
  const settledBy = Date.now() + 20_000
  while (Date.now() < settledBy && enqueued.some((id) => !ran.has(id))) await delay(lookMs)
  const names = (await schedulesOf(producer)).map(({ name }) => name).sort()
  // The jobs of the latest ticks that were looked at may wait for a worker yet.
  await delay(2 * longestMs)
  await crew.stop()
  await producer.close()

  const wanted = services.flatMap((one) => [`${one}-each`, `${one}-long`, `${one}-of-${crew.versionOf(one)}`]).sort()
  const rows = account.table()
  waits.sort((a, b) => a - b)
  const [median, p99, longest] = [0.5, 0.99, 1].map((part) => waits[Math.ceil(part * waits.length) - 1]!)
  report.say(`${kind}: ${crew.deploys} deploys, ${crew.kills} × kill -9, ${waits.length} jobs started`)
  report.say('schedule · ticks · enqueued · left out, by cause')
  for (const { schedule, due, enqueued: done, causes } of rows)
    report.say(
      `  ${schedule} · ${due} · ${done} · ${causes.map(([cause, count]) => `${count} ${cause}`).join('; ') || '0'}`,
    )
  report.say(`waits in ms: median ${median}, 99 % ${p99}, longest ${longest}`)
  report.claim('every schedule of both services is there, and no other', names.join() === wanted.join())
  report.claim('no instant ticked twice', account.twice === 0)
  report.claim(
    'of no tick that was left out the cause is unknown',
    rows.every(({ unknown }) => unknown === 0),
  )
  report.claim(
    'each schedule ticked, but for those that a deploy replaced before they were due',
    rows.every(({ schedule, due, enqueued: done }) => done > 0 || (due === 0 && !wanted.includes(schedule))),
  )
  report.claim(
    'every job ran',
    enqueued.every((id) => ran.has(id)),
  )
  report.claim(`no job waited for ${longMs / 1_000} s`, longest! < longMs)
  report.claim(
    'each process warned at most once of each task of the other service',
    warnings <= (crew.deploys * 2 + crew.kills + 4) * 3,
  )
  return { deploys: crew.deploys, kills: crew.kills, jobs: waits.length, median, p99, longest, rows }
}

type Producer = { readonly schedules: { list(options: { limit: number }): Promise<{ schedules: ScheduleRecord[] }> } }

async function schedulesOf({ schedules }: Producer): Promise<ScheduleRecord[]> {
  return (await schedules.list({ limit: 200 })).schedules
}

/** The counts of the store tell what a process that was killed told nobody. */
async function looks(mill: Producer, until: number, account: TickAccount): Promise<void> {
  while (Date.now() < until) {
    account.seen(await schedulesOf(mill))
    await delay(lookMs)
  }
}
