/**
 * Proof of the soak: for an hour, jobs of every kind run at a steady pace, on SQLite and on Redis at the same time. The
 * resources of the processes, the size of the stores and the lateness of starts are measured each minute. None of them
 * grows with time.
 */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type RedisServer, startRedis } from 'millrace/store-testing'
import type { ProducerSample } from '../everything/everything-producer.js'
import type { EverythingWord, WorkerSample } from '../everything/everything-worker.js'
import { forkedProgram } from '../forked-program.js'
import type { ProcessSample } from '../process-sample.js'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'
import { trend } from '../trend.js'

export const seed = 0

const minutes = Number(process.env.SOAK_MINUTES ?? 60)
/** After this time the remembered calls, and the memory of the processes, have reached their level. */
const warmMinutes = Math.min(15, Math.floor(minutes / 3))
const minuteMs = 60_000
const perSecond = 150

interface SoakMinute extends WorkerSample {
  readonly worker: ProcessSample
  readonly producer: ProducerSample
  readonly storeMb: number
}

interface SoakedStore {
  readonly name: string
  readonly url: string
  /** The size of the store in MB. */
  size(): Promise<number>
}

const bytesPerMb = 1_048_576

export async function prove(report: Report): Promise<Summary> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-soak-'))
  // The slow log of the server fills its own memory, with every command that had to wait for a processor.
  const server = await startRedis({ config: ['appendonly yes', 'appendfsync everysec', 'slowlog-max-len 0'] })
  try {
    report.say(`${minutes} minutes, ${perSecond} jobs a second on each store: ${await redisVersion(server)}`)
    const stores = [sqliteIn(folder), redisAt(server)]
    const soaked = await Promise.all(stores.map((store) => soak(store)))
    const summary: Record<string, unknown> = {}
    for (const [i, store] of stores.entries()) summary[store.name] = judged(report, store.name, soaked[i]!)
    return summary
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true })
  }
}

function sqliteIn(folder: string): SoakedStore {
  const file = join(folder, 'jobs.db')
  const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return {
    name: 'SQLite',
    url: `sqlite:${file}`,
    size: async () => (sizeOf(file) + sizeOf(`${file}-wal`)) / bytesPerMb,
  }
}

function redisAt(server: RedisServer): SoakedStore {
  return {
    name: 'Redis',
    url: server.url,
    async size() {
      const [, bytes] = /used_memory:(\d+)/.exec((await server.ask('INFO', 'memory')) as string)!
      return Number(bytes) / bytesPerMb
    },
  }
}

async function soak(store: SoakedStore): Promise<SoakMinute[]> {
  const worker = started('everything-worker.ts', store.url)
  const producer = started('everything-producer.ts', store.url, String(perSecond))
  try {
    const soaked: SoakMinute[] = []
    const begunAt = performance.now()
    for (let minute = 1; minute <= minutes; minute += 1) {
      await delay(begunAt + minute * minuteMs - performance.now())
      const [word, producerSample, storeMb] = await Promise.all([
        told<EverythingWord & { kind: 'sample' }>(worker, (said) => said.kind === 'sample'),
        told<ProducerSample>(producer, () => true),
        store.size(),
      ])
      const { completed, p50Ms, p99Ms, ...held } = word.sample
      soaked.push({ completed, p50Ms, p99Ms, worker: held, producer: producerSample, storeMb })
    }
    return soaked
  } finally {
    for (const child of [producer, worker]) {
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    }
  }
}

function started(program: string, url: string, ...args: readonly string[]): ChildProcess {
  return forkedProgram(join(import.meta.dirname, '../everything', program), [...args], {
    // What V8 compiles and optimises over an hour lies in the heap too, and would hide what grows there.
    flags: ['--expose-gc', '--no-opt'],
    env: { MILLRACE_STORE: url, EVERYTHING_TICK: '15s' },
  })
}

/** The next message of this kind from a process that was asked for it. Rejects if the process ends first. */
function told<Word>(child: ChildProcess, isIt: (said: EverythingWord) => boolean): Promise<Word> {
  return new Promise((resolve, reject) => {
    const lose = () => reject(new Error('a process of the soak ended'))
    const hear = (said: EverythingWord) => {
      if (!isIt(said)) return
      child.off('message', hear).off('exit', lose)
      resolve(said as Word)
    }
    child.on('message', hear).once('exit', lose)
    child.send('sample')
  })
}

/**
 * The growth that the store may add in this hour, all of which is forgotten later. A history keeps each minute of eight
 * queues for a week (0.1 MB), and the ids of 240 ticks and 900 children are remembered for an hour (200 B each, 0.2 MB).
 */
const rememberedMb = 0.5
const storeColumn = 'store, MB'

const columns: Readonly<Record<string, (minute: SoakMinute) => number>> = {
  'worker, heap MB': ({ worker }) => worker.heapMb,
  'worker, RSS MB': ({ worker }) => worker.rssMb,
  'worker, descriptors': ({ worker }) => worker.descriptors,
  'worker, resources': ({ worker }) => worker.resources,
  'producer, heap MB': ({ producer }) => producer.heapMb,
  'producer, RSS MB': ({ producer }) => producer.rssMb,
  'producer, descriptors': ({ producer }) => producer.descriptors,
  [storeColumn]: ({ storeMb }) => storeMb,
  'start latency p50, ms': ({ p50Ms }) => p50Ms,
  'start latency p99, ms': ({ p99Ms }) => p99Ms,
}

function judged(report: Report, name: string, soaked: readonly SoakMinute[]): Summary {
  const warm = soaked.slice(warmMinutes)
  const completed = soaked.reduce((sum, minute) => sum + minute.completed, 0)
  report.say('')
  report.say(`${name}: ${completed.toLocaleString('en')} jobs completed`)
  report.say(`minute    ${Object.keys(columns).join(' | ')}`)
  for (const [i, minute] of soaked.entries())
    report.say(
      `${String(i + 1).padStart(6)}    ${Object.values(columns)
        .map((of) => of(minute).toFixed(1))
        .join(' | ')}`,
    )
  const { failures } = soaked.at(-1)!.producer
  report.claim(`${name}: no enqueue was refused`, failures === 0)
  const trends: Record<string, string> = {}
  for (const [column, of] of Object.entries(columns)) {
    const { perHour, error, mean } = trend(warm.map(of), 1 / 60)
    trends[column] = `${perHour.toFixed(2)} ± ${error.toFixed(2)}`
    report.claim(
      `${name}: ${column} grows by ${trends[column]} an hour, of ${mean.toFixed(1)}`,
      perHour <= 2 * error || perHour < mean / 100 || (column === storeColumn && perHour < rememberedMb),
    )
  }
  return { completed, ...trends }
}
