/**
 * Proof of many steps and sleeps, on SQLite and on Redis. The last of 1,000 steps writes no more than the hundredth. 100,000
 * runs that sleep for a week cost their rows: a worker beside them is as idle as beside none, and other jobs start as soon.
 * 10,000 runs whose sleeps end at one instant start about as fast as 10,000 other jobs that fall due together.
 */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { DatabaseSync } from '@photostructure/sqlite'
import { defineTask, type Mill, millrace } from 'millrace'
import { type RedisServer, startRedis } from 'millrace/store-testing'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'

/** Nothing is drawn at random. */
export const seed = 0

const scale = Number(process.env['STEPS_SCALE'] ?? 1)
const asleep = Math.round(100_000 * scale)
const wakes = Math.round(10_000 * scale)
const steps = 1_000
const concurrency = 100
const longestMs = 600_000

const mostGrowth = 1.2
const mostIdleMs = 50
const mostBytes = 1_024
const leastRate = 0.5

export async function prove(report: Report): Promise<Summary> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-step-sizes-'))
  const server = await startRedis({ config: ['appendonly yes', 'appendfsync everysec'] })
  try {
    report.say(`the server: ${await redisVersion(server)}`)
    const file = join(folder, 'jobs.db')
    return {
      SQLite: await provenOn(report, 'SQLite', `sqlite:${file}`, writtenByProcess, () => bytesOf(file)),
      Redis: await provenOn(
        report,
        'Redis',
        server.url,
        () => figureOf(server, 'aof_current_size'),
        () => figureOf(server, 'used_memory'),
      ),
    }
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** `written`: the bytes that were written so far. `kept`: the bytes that the store takes. */
async function provenOn(
  report: Report,
  store: string,
  url: string,
  written: () => number | Promise<number>,
  kept: () => number | Promise<number>,
): Promise<Summary> {
  const writes: number[] = []
  const longRun = defineTask({
    name: 'long-run',
    queue: 'runs',
    run: async (_: undefined, ctx) => {
      for (let n = 0; n < steps; n += 1) {
        if (n % 100 === 0) writes.push(await written())
        await ctx.step(`step-${n}`, () => ({ n: 1_000_000 + n, text: 'x'.repeat(100) }))
      }
      writes.push(await written())
    },
  })
  const week = defineTask({ name: 'week', queue: 'asleep', run: async (_: number, ctx) => ctx.sleep('week', '7d') })
  const startedAt: number[] = []
  const nap = defineTask({
    name: 'nap',
    queue: 'naps',
    run: async (until: number, ctx) => {
      await ctx.sleep('nap', Math.max(1, until - Date.now()))
      startedAt.push(performance.now())
    },
  })
  const due = defineTask({
    name: 'due',
    queue: 'due',
    run: async (_: number) => {
      startedAt.push(performance.now())
    },
  })
  const quick = defineTask({
    name: 'quick',
    queue: 'asleep',
    run: async (sentAt: number) => performance.now() - sentAt,
  })
  const tasks = [longRun, week, nap, due, quick]
  const queues = { runs: {}, asleep: { retention: { results: 'untilDeleted' as const } }, naps: {}, due: {} }
  const mill = millrace({ store: url, queues, tasks })
  try {
    await mill.worker({ concurrency }).start()

    await (await mill.enqueue(longRun, undefined)).result({ timeout: longestMs })
    const perStep = writes.slice(1).map((bytes, i) => Math.round((bytes - writes[i]!) / 100))
    // In the first hundred the process also begins.
    const growth = perStep.at(-1)! / perStep[1]!
    report.say(`— ${store}: bytes written for each of ${steps} steps, by hundreds: ${perStep.join(', ')}`)
    report.claim(
      `${store}: the last hundred steps write at most ${mostGrowth} times as much as the second: ${growth.toFixed(2)}`,
      growth <= mostGrowth,
    )

    const idleMs = [await idleCpu()]
    const before = await kept()
    await mill.enqueueMany(
      week,
      Array.from({ length: asleep }, (_, n) => n),
    )
    await until(async () => (await mill.queue('asleep').depth()).scheduled === asleep)
    const bytes = Math.round(((await kept()) - before) / asleep)
    idleMs.push(await idleCpu())
    const waits: number[] = []
    for (let n = 0; n < 200; n += 1) waits.push(await (await mill.enqueue(quick, performance.now())).result())
    const median = waits.toSorted((a, b) => a - b)[100]!
    report.say(
      `— ${store}: ${asleep} runs asleep: ${bytes} bytes each; processor time of an idle worker in 10 s: ${idleMs.map((ms) => ms.toFixed(0)).join(' ms before, ')} ms beside them; a job starts after ${median.toFixed(1)} ms (median)`,
    )
    report.claim(`${store}: a run that sleeps takes at most ${mostBytes} bytes: ${bytes}`, bytes <= mostBytes)
    report.claim(
      `${store}: an idle worker takes at most ${mostIdleMs} ms more of the processor in 10 s beside them: ${(idleMs[1]! - idleMs[0]!).toFixed(0)}`,
      idleMs[1]! - idleMs[0]! <= mostIdleMs,
    )

    const rates = [await rateOf(mill, due), await rateOf(mill, nap)]
    report.say(
      `— ${store}: ${wakes} jobs that fall due together start at ${rates[0]!.toFixed(0)}/s, ${wakes} runs that wake together at ${rates[1]!.toFixed(0)}/s`,
    )
    const share = rates[1]! / rates[0]!
    report.claim(
      `${store}: runs that wake together start at least ${leastRate} times as fast: ${share.toFixed(2)}`,
      share >= leastRate,
    )
    return { perStep, bytes, idleMs, median, rates }
  } finally {
    await mill.close()
  }

  /** Starts a second, from the first that starts to the last. */
  async function rateOf(mill: Mill, task: typeof due | typeof nap): Promise<number> {
    const at = Date.now() + 3_000 + wakes
    startedAt.length = 0
    const inputs = Array.from({ length: wakes }, () => at)
    if (task.name === 'due') await mill.enqueueMany(due, inputs, () => ({ runAt: new Date(at) }))
    else await mill.enqueueMany(nap, inputs)
    await until(async () => startedAt.length === wakes)
    return (1_000 * wakes) / (startedAt.at(-1)! - startedAt[0]!)
  }
}

/** The processor time of this process in ten seconds in which nothing is asked of it. */
async function idleCpu(): Promise<number> {
  await delay(2_000)
  const before = process.cpuUsage()
  await delay(10_000)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

/** What the tables take, also as far as it still stands in the log alone. */
function bytesOf(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    const [pages, bytes] = ['page_count', 'page_size'].map((name) => {
      const row = db.prepare(`PRAGMA ${name}`).get() as Record<string, number>
      return row[name]!
    })
    return pages! * bytes!
  } finally {
    db.close()
  }
}

function writtenByProcess(): number {
  return Number(/^wchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))![1])
}

async function figureOf(server: RedisServer, name: string): Promise<number> {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(String(await server.ask('INFO', 'all')))![1])
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const startedAt = performance.now()
  while (!(await isTrue())) {
    if (performance.now() - startedAt > longestMs) throw new Error('it has not come to an end')
    await delay(100)
  }
}
