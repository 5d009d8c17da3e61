/**
 * Proof: a worker with few slots, which claims more jobs of a throttled queue than it has slots, starts no more of them
 * in any closed window than the limit. Three processes of five slots work off 6,000 jobs, 500 in a second, with
 * handlers that end at once, take some ms, or block their loop; on an idle machine and with both cores busy. Also 20,000
 * groups that may start once an hour each.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTask, millrace } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { forkedProgram } from '../forked-program.js'
import type { Report, Summary } from '../report.js'
import { briskGroups } from './brisk-groups.js'
import { type BriskEnd, brisk, type Handler, limit, slots, throttle, windowMs } from './brisk-words.js'
import { mostWithin } from './starts-words.js'

const jobs = 6_000
const workers = 3
const handlers: readonly Handler[] = ['at once', 'in turns', 'blocking']
/** A start counts for the window and a spread of 50 ms. */
const ideal = limit / (windowMs + 50)
const leastPace = 0.85
/** Permits of jobs that could not begin in time and were put back. */
const mostWasted = 0.01

export async function prove(report: Report): Promise<Summary> {
  const figures: Record<string, unknown> = {}
  for (const kind of ['sqlite', 'redis'] as const) figures[`groups, ${kind}`] = await briskGroups(report, kind)
  for (const load of ['idle', 'busy'] as const) {
    const loops = load === 'idle' ? [] : [busyLoop(), busyLoop()]
    try {
      for (const kind of ['sqlite', 'redis'] as const)
        for (const handler of handlers)
          figures[`${load}, ${kind}, ${handler}`] = await run(report, `${load}, ${kind}, ${handler}`, kind, handler)
    } finally {
      for (const loop of loops) loop.kill('SIGKILL')
    }
  }
  return figures
}

function busyLoop(): ChildProcess {
  return spawn(process.execPath, ['-e', 'for (;;) {}'], { stdio: 'ignore' })
}

async function run(report: Report, what: string, kind: 'sqlite' | 'redis', handler: Handler) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-brisk-'))
  const server = kind === 'redis' ? await startRedis() : undefined
  const store = server === undefined ? `sqlite:${join(folder, 'jobs.db')}` : server.url
  const begin = defineTask({ name: 'begin', queue: brisk })
  const mill = millrace({ store, queues: { [brisk]: { throttle } }, tasks: [begin] })
  await mill.enqueueMany(begin, new Array<unknown>(jobs).fill(0))
  const crew = Array.from({ length: workers }, () =>
    forkedProgram(join(import.meta.dirname, 'brisk-worker.ts'), [store, handler]),
  )
  try {
    await completed(crew, jobs)
    const ends = await Promise.all(crew.map(ended))
    const starts = ends.flatMap((end) => end.starts).sort((a, b) => a - b)
    const [most, wasted, late] = [mostWithin(starts, windowMs), sum(ends, 'wasted'), sum(ends, 'late')]
    const pace = (jobs - limit) / (starts.at(-1)! - starts[0]!) / ideal
    const mostClaimed = Math.max(...ends.map((end) => end.mostClaimed))
    report.say(
      `${what}: pace ${pace.toFixed(3)}, up to ${mostClaimed} jobs a claim, put back ${wasted}, told late ${late}`,
    )
    report.claim(`${what}: each job starts once (${starts.length})`, starts.length === jobs)
    report.claim(`${what}: no closed window holds more than ${limit} starts (${most})`, most <= limit)
    report.claim(`${what}: at most ${100 * mostWasted} % of the jobs are put back`, wasted <= mostWasted * jobs)
    // The slots of a worker whose loop is blocked cannot begin more than one job each in time.
    if (handler !== 'blocking') {
      report.claim(`${what}: claims bring more than ${slots} jobs`, mostClaimed > slots)
      report.claim(`${what}: at least ${leastPace} of the ideal pace`, pace >= leastPace)
    }
    return { pace, most, mostClaimed, wasted, late }
  } finally {
    for (const one of crew) one.kill('SIGKILL')
    await mill.close()
    await server?.stop()
    rmSync(folder, { recursive: true })
  }
}

/** Resolves when the crew has completed so many jobs. */
function completed(crew: readonly ChildProcess[], count: number): Promise<void> {
  let left = count
  return new Promise((resolve) => {
    for (const one of crew)
      one.on('message', (message) => {
        if (message === 'completed' && --left === 0) resolve()
      })
  })
}

async function ended(one: ChildProcess): Promise<BriskEnd> {
  const told = once(one, 'message') as Promise<[BriskEnd]>
  one.send('end')
  return (await told)[0]
}

function sum(ends: readonly BriskEnd[], of: 'wasted' | 'late'): number {
  return ends.reduce((all, end) => all + end[of], 0)
}
