/**
 * Proof of what an operator asks of one tenant, on SQLite and on Redis. Of a million jobs of a thousand groups those of a group
 * of 20,000 are listed, counted and cancelled, and no others, while a process beside runs 200 jobs a second of another queue:
 * of these the 99th of a hundred begins at most half as late again as when it is alone. An action on one group is over before
 * many of them have begun, so ten such groups follow each other. An operator has a machine of his own, so this process, which is
 * his here, has the lowest priority, and takes no processor from the others. A search over all queues ends after about a
 * second, and says if it has not looked at all.
 */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, type Mill, millrace } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { webHandler } from 'millrace/web'
import { forkedProgram, killed } from '../forked-program.js'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'

export const seed = 0

/** Use a value below 1 for a quick look, which proves nothing. */
const size = Number(process.env['MILLRACE_PROOF_SIZE'] ?? 1)
const jobs = Math.ceil(1_000_000 * size)
const groups = 1_000
/** Every fiftieth job is of the first tenant, the next ones of the others: they are spread evenly over all jobs. */
const every = 50
const tenants = Array.from({ length: 10 }, (_, n) => `tenant-${n}`)
const ofTenants = tenants.length * Math.ceil(jobs / every)
const perCall = 10_000
const aloneMs = Math.ceil(30_000 * Math.min(1, Math.max(size, 0.1)))
const mostRatio = 1.5
const mostSearchMs = 1_500

const bill = defineTask({ name: 'bill', queue: 'billing', run: (_: { order: number; note: string }) => {} })

export async function prove(report: Report): Promise<Summary> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-tenants-'))
  const server = await startRedis()
  const [sqlite, redis] = [`sqlite:${join(folder, 'jobs.db')}`, server.url]
  // Before this process goes down in priority: they would go with it.
  const neighbours = [sqlite, redis].map((store) =>
    forkedProgram(join(import.meta.dirname, 'tenants-neighbour.ts'), [store]),
  )
  setPriority(constants.priority.PRIORITY_LOW)
  try {
    report.say(`the server: ${await redisVersion(server)}`)
    return {
      size,
      sqlite: await provedOn(report, 'SQLite', sqlite, neighbours[0]!),
      redis: await provedOn(report, 'Redis', redis, neighbours[1]!),
    }
  } finally {
    await Promise.all(neighbours.map(killed))
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function provedOn(report: Report, name: string, store: string, neighbour: ChildProcess): Promise<unknown> {
  const mill = millrace({ store, queues: { billing: {} }, tasks: [bill] }) as unknown as Mill
  /** How late the jobs beside have begun since the last call. */
  const starts = async (): Promise<number[]> => {
    neighbour.send('say')
    const [late] = (await once(neighbour, 'message')) as [number[]]
    return late.sort((a, b) => a - b)
  }
  try {
    const filled = await timed(() => fill(mill))
    report.say(
      `${name}: ${jobs} jobs of ${groups} groups, ${ofTenants} of ${tenants.length} tenants, enqueued in ${seconds(filled.ms)}`,
    )
    neighbour.send('begin')
    await starts()
    await delay(aloneMs)
    const alone = await starts()
    report.say(`${name}: beside, alone: ${lateText(alone)}`)
    const figures: Record<string, unknown> = { alone: p99(alone) }
    const { jobs: own } = mill.queue('billing')
    for (const [act, run, claimed] of [
      ['list', (group: string) => listed(mill, group), 'every job of the tenants is listed once'],
      ['count', (group: string) => own.count({ group }), 'every job of the tenants is counted'],
      ['cancel', (group: string) => own.cancel({ group }, 'has left'), 'every job of the tenants is cancelled'],
    ] as const) {
      const { ms, value } = await timed(() => ofEach(run))
      const late = await starts()
      const ratio = p99(late) / p99(alone)
      report.say(`${name}: ${act}: ${value} jobs in ${seconds(ms)}; beside: ${lateText(late)}`)
      report.claim(`${name}: ${claimed} (${value})`, value === ofTenants)
      report.claim(
        `${name}: beside, the 99th of a hundred begins at most ${mostRatio} times as late (${ratio.toFixed(2)})`,
        ratio <= mostRatio,
      )
      figures[act] = { ms: Math.round(ms), p99: p99(late), ratio: Number(ratio.toFixed(2)) }
    }
    const { ready } = await mill.queue('billing').depth()
    report.claim(`${name}: no other job is gone (${ready})`, ready === jobs - ofTenants)
    figures['search'] = await searched(report, name, mill)
    const whole = await timed(() => own.count({ text: `order ${jobs - 1} ` }))
    report.say(`${name}: all inputs are read for a text in ${seconds(whole.ms)}`)
    report.claim(`${name}: then its job is found`, whole.value === 1)
    return { ...figures, wholeMs: Math.round(whole.ms) }
  } finally {
    await killed(neighbour)
    await mill.close()
  }
}

async function fill(mill: Mill): Promise<void> {
  for (let from = 0; from < jobs; from += perCall) {
    const inputs = Array.from({ length: Math.min(perCall, jobs - from) }, (_, i) => ({
      order: from + i,
      note: `order ${from + i} of a customer who waits for it`,
    }))
    await mill.enqueueMany(bill, inputs, ({ order }) => ({
      id: `bill-${order}`,
      group: tenants[order % every] ?? `group-${order % (groups - tenants.length)}`,
    }))
  }
}

/** The sum of what an action says of each tenant. */
async function ofEach(act: (group: string) => Promise<number>): Promise<number> {
  let sum = 0
  for (const tenant of tenants) sum += await act(tenant)
  return sum
}

/** The number of jobs of a group that a list has, page by page. */
async function listed(mill: Mill, group: string): Promise<number> {
  const ids = new Set<string>()
  let count = 0
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await mill.queue('billing').jobs.list({ group, limit: 200, cursor })
    for (const { id } of page.jobs) ids.add(id)
    count += page.jobs.length
    cursor = page.cursor
  }
  return count === ids.size ? count : Number.NaN
}

/** Over all queues, through the API. */
async function searched(report: Report, name: string, mill: Mill): Promise<Record<string, number>> {
  const window = webHandler(mill)
  const figures: Record<string, number> = {}
  try {
    for (const [what, query] of [
      ['an id', `id=bill-${jobs - 1}`],
      ['a part of an id', `text=bill-${jobs - 1}`],
      ['a group', 'group=group-7'],
      ['a text of an input near the front', 'text=order+77+of'],
      ['a text of an input at the end', `text=order+${jobs - 1}+of`],
    ] as const) {
      const request = new Request(`http://localhost/api/v1/search?${query}`)
      const { ms, value } = await timed(async () => {
        const response = await window.fetch(request, { address: '127.0.0.1' })
        return (await response.json()) as { items: unknown[]; more: boolean }
      })
      const found = value.items.length
      report.say(
        `${name}: a search for ${what} finds ${found} in ${Math.round(ms)} ms${value.more ? ', and says that it has not looked at all' : ''}`,
      )
      report.claim(`${name}: it ends within ${mostSearchMs} ms`, ms <= mostSearchMs)
      report.claim(`${name}: it finds them, or says that it has not looked at all`, found > 0 || value.more)
      figures[what] = Math.round(ms)
    }
    return figures
  } finally {
    await window.close()
  }
}

async function timed<T>(act: () => Promise<T>): Promise<{ readonly ms: number; readonly value: T }> {
  const startedAt = performance.now()
  const value = await act()
  return { ms: performance.now() - startedAt, value }
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`

/** Of ascending numbers. */
function at(late: readonly number[], share: number): number {
  return Number((late[Math.min(late.length - 1, Math.floor(late.length * share))] ?? Number.NaN).toFixed(2))
}

function p99(late: readonly number[]): number {
  return at(late, 0.99)
}

function lateText(late: readonly number[]): string {
  return `p50 ${at(late, 0.5)} ms, p99 ${p99(late)} ms, of ${late.length}`
}
