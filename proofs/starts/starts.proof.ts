/**
 * Proof: a throttle bounds starts of handlers as the other side sees them. Three idle processes, or eight on Postgres, run
 * bursts of 20 jobs for each of 30 hosts, 5 in 2 s by group. A server logs when their requests arrive. No closed window
 * holds more than 5. The same holds with both cores busy, where late jobs are put back. `BURSTS` (default 20) bursts of
 * each kind take about 9 s each. Between two of them all windows open again.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { forkedProgram } from '../forked-program.js'
import type { Report, Summary } from '../report.js'
import { limit, mostWithin, throttleOf, visits, windowMs } from './starts-words.js'

const bursts = Number(process.env['BURSTS'] ?? 20)
/** The conditions: both, or `LOADS=idle` alone. */
const loads = (['idle', 'busy'] as const).filter((load) => (process.env['LOADS'] ?? 'idle busy').includes(load))
const hosts = 30
const jobs = 20
/** The worker processes on each store. */
const workers = { sqlite: 3, redis: 3, postgres: 8 } as const
type StoreKind = keyof typeof workers

/** `STARTS_STORES`: some of the stores, by their names. */
const { STARTS_STORES: only } = process.env
const kinds = (Object.keys(workers) as StoreKind[]).filter(
  (kind) => only === undefined || only.split(',').includes(kind),
)
export const part = only
/** Longer than a start counts. */
const restMs = windowMs + 200
/** From the first to the last start of a host, if nothing is delayed. */
const idealMs = { plain: (Math.ceil(jobs / limit) - 1) * windowMs, moderate: ((jobs - 1) * windowMs) / limit }
const leastPace = 0.95

interface Visit {
  readonly host: string
  readonly burst: string
  readonly startedAt: number
  readonly arrivedAt: number
}

const program = (name: string, args: readonly string[] = []) => forkedProgram(join(import.meta.dirname, name), args)

export async function prove(report: Report): Promise<Summary> {
  const figures: Record<string, unknown> = {}
  for (const load of loads) {
    const loops = load === 'idle' ? [] : [busyLoop(), busyLoop()]
    try {
      for (const kind of kinds)
        for (const tempo of ['plain', 'moderate'] as const)
          figures[`${load} ${kind} ${tempo}`] = await series(report, load, kind, tempo)
    } finally {
      for (const loop of loops) loop.kill('SIGKILL')
    }
  }
  return figures
}

function busyLoop(): ChildProcess {
  return spawn(process.execPath, ['-e', 'for (;;) {}'], { stdio: 'ignore' })
}

async function series(report: Report, load: 'idle' | 'busy', kind: StoreKind, tempo: 'plain' | 'moderate') {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-starts-'))
  const server = kind === 'redis' ? await startRedis() : kind === 'postgres' ? await PostgresServer.start() : undefined
  const store = server === undefined ? `sqlite:${join(folder, 'jobs.db')}` : server.url
  const site = program('starts-site.ts')
  const [{ port }] = (await once(site, 'message')) as [{ port: number }]
  const crew = Array.from({ length: workers[kind] }, () => program('starts-worker.ts', [store, String(port), tempo]))
  const visit = defineTask({ name: 'visit', queue: visits })
  const mill = millrace({ store, queues: { [visits]: { throttle: throttleOf(tempo === 'moderate') } }, tasks: [visit] })
  try {
    await Promise.all(crew.map((one) => once(one, 'message')))
    const sums = { series: 0, overArrivals: 0, overStarts: 0, paces: [] as number[], widest: 0 }
    for (let burst = 0; burst < bursts; burst += 1) {
      const all = arrivals(site, hosts * jobs)
      const inputs = Array.from({ length: hosts * jobs }, (_, i) => ({ host: `h${i % hosts}`, burst }))
      await mill.enqueueMany(visit, inputs, (_, i) => ({ group: inputs[i]!.host }))
      await all
      judge(await logOf(site), idealMs[tempo], sums)
      await delay(restMs)
    }
    const ends = await Promise.all(crew.map(ended))
    const wasted = ends.reduce((sum, end) => sum + end.wasted, 0)
    const late = ends.reduce((sum, end) => sum + end.late, 0)
    const pace = median(sums.paces)
    const what = `${load}, ${kind}, ${tempo}: ${sums.series} series`
    report.say(
      `${what}: pace ${pace.toFixed(3)}, put back ${wasted}, told late ${late}, from handler to server at most ${sums.widest.toFixed(1)} ms`,
    )
    report.claim(
      `${what}: no closed window holds more than ${limit} arrivals (${sums.overArrivals})`,
      sums.overArrivals === 0,
    )
    report.claim(`${what}: nor more than ${limit} starts (${sums.overStarts})`, sums.overStarts === 0)
    if (load === 'idle') report.claim(`${what}: at least 95 % of the ideal pace`, pace >= leastPace)
    return { ...sums, paces: undefined, pace, wasted, late }
  } finally {
    for (const one of [...crew, site]) one.kill('SIGKILL')
    await mill.close()
    await server?.stop()
    rmSync(folder, { recursive: true })
  }
}

/** Resolves when the server has seen this number of requests. */
function arrivals(site: ChildProcess, count: number): Promise<void> {
  return new Promise((resolve) => {
    const heard = (message: unknown) => {
      if (message !== count) return
      site.off('message', heard)
      resolve()
    }
    site.on('message', heard)
  })
}

function logOf(site: ChildProcess): Promise<readonly Visit[]> {
  return new Promise((resolve) => {
    const heard = (message: unknown) => {
      if (typeof message !== 'object') return
      site.off('message', heard)
      resolve((message as { log: readonly Visit[] }).log)
    }
    site.on('message', heard)
    site.send('log')
  })
}

async function ended(one: ChildProcess): Promise<{ wasted: number; late: number }> {
  const told = once(one, 'message') as Promise<[{ wasted: number; late: number }]>
  one.send('end')
  return (await told)[0]
}

function judge(
  log: readonly Visit[],
  ideal: number,
  sums: { series: number; overArrivals: number; overStarts: number; paces: number[]; widest: number },
): void {
  for (const host of new Set(log.map((visit) => visit.host))) {
    const visited = log.filter((visit) => visit.host === host)
    const inOrder = (of: (visit: Visit) => number) => visited.map(of).sort((a, b) => a - b)
    const arrived = inOrder(({ arrivedAt }) => arrivedAt)
    sums.series += 1
    if (mostWithin(arrived, windowMs) > limit) sums.overArrivals += 1
    if (
      mostWithin(
        inOrder(({ startedAt }) => startedAt),
        windowMs,
      ) > limit
    )
      sums.overStarts += 1
    sums.paces.push(ideal / (arrived.at(-1)! - arrived[0]!))
    sums.widest = Math.max(sums.widest, ...visited.map(({ arrivedAt, startedAt }) => arrivedAt - startedAt))
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}
