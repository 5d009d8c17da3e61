/**
 * The price of joins: the settle of a job that has completed, whether it leaves nothing, keeps its result, or is a
 * member of a join, on SQLite and on Redis. All in one process, in alternating rounds.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { storeSource } from '#src/mill/store-source.js'
import type { ClaimKey, SettleItem } from '#src/stores/contract/settle.js'
import type { Store } from '#src/stores/contract/store.js'
import { memberId } from '#src/stores/rules/join-rules.js'
import type { BenchReport } from './bench.js'
import { RedisMeter } from './redis/redis-meter.js'
import { startRedisServer } from './redis/redis-server.js'
import { figure, grouped, roundsOf, roundsText } from './rounds.js'

const ends = {
  plain: 'completes, and leaves nothing',
  kept: 'completes, and its result is kept',
  reported: 'member of a join, no result',
  joined: 'member of a join, with a result',
} as const

type End = keyof typeof ends

/** The jobs of one settle. Workers settle together what has ended in the same moment. */
const sizes = [1, 20, 250] as const
const result = JSON.stringify({ region: 'north', total: 12_345 })

interface Lap {
  /** Of all settles. */
  readonly ms: number
  /** Processor time of Node, and of the server if there is one. */
  readonly nodeMs: number
  readonly serverMs: number
  /** Both. */
  readonly cpuMs: number
}

/** The processor time that the server has taken, in ms. */
type ServerCpu = () => Promise<number>

/** Options. `--quick`: shows that it runs; its figures mean nothing. `--stores=sqlite`: only these. */
export async function bench(report: BenchReport): Promise<unknown> {
  const isQuick = process.argv.includes('--quick')
  const stores = process.argv.find((argument) => argument.startsWith('--stores='))?.slice('--stores='.length)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const ratios: Record<string, number> = {}
  report.say(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}`)
  try {
    if (stores === undefined || stores.includes('sqlite')) {
      const file = (end: End) => `sqlite:${join(folder, `${end}.db`)}`
      Object.assign(ratios, await compared(report, 'SQLite', isQuick, file, async () => 0))
    }
    if (stores === undefined || stores.includes('redis')) {
      const server = await startRedisServer()
      const meter = new RedisMeter(server.url)
      try {
        Object.assign(
          ratios,
          await compared(
            report,
            'Redis',
            isQuick,
            () => server.url,
            () => meter.cpuMs(),
          ),
        )
      } finally {
        await meter.close()
        await server.stop()
      }
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  return { ratios }
}

/** Prints the ratios to a plain completion within each round, and resolves to their medians by name. */
async function compared(
  report: BenchReport,
  store: string,
  isQuick: boolean,
  place: (end: End) => string,
  cpu: ServerCpu,
): Promise<Record<string, number>> {
  const ratios: Record<string, number> = {}
  const names = Object.keys(ends) as End[]
  // Each end has a store of its own in all rounds: the code of a thread that has just started is not compiled.
  const stores = new Map<End, Store>()
  try {
    for (const end of names) stores.set(end, await storeSource(place(end)).create())
    for (const size of sizes) {
      const jobs = (isQuick ? 1 : 20) * (size === 1 ? 50 : size === 20 ? 200 : 1_000)
      const rounds = isQuick ? 1 : 9
      const laps = new Map<End, Lap[]>()
      for (let round = -2; round < rounds; round += 1)
        for (const end of round % 2 === 0 ? names : names.toReversed()) {
          const lap = await lapOf(stores.get(end)!, `${size}-${round + 2}-${end}`, end, jobs, size, cpu)
          if (round >= 0) laps.set(end, [...(laps.get(end) ?? []), lap])
        }
      Object.assign(ratios, told(report, store, size, jobs, laps))
    }
  } finally {
    for (const one of stores.values()) await one.close()
  }
  return ratios
}

function told(report: BenchReport, store: string, size: number, jobs: number, laps: ReadonlyMap<End, Lap[]>) {
  const ratios: Record<string, number> = {}
  report.say(`\n${store}, ${size} ${size === 1 ? 'job' : 'jobs'} a settle`)
  const plain = laps.get('plain')!
  for (const [end, own] of laps) {
    const [times, cpus] = (['ms', 'cpuMs'] as const).map((of) => roundsOf(own.map((lap, i) => lap[of] / plain[i]![of])))
    const us = (of: keyof Lap) => grouped(roundsOf(own.map((lap) => (1_000 * lap[of]) / jobs)).median, 1)
    report.say(
      `  ${ends[end].padEnd(34)} ${us('ms').padStart(7)} µs a job, ${roundsText(times!, 2)} of plain; processor ${us('nodeMs')} + ${us('serverMs')} µs, ${roundsText(cpus!, 2)}`,
    )
    if (end === 'plain') continue
    ratios[`${end}${size}${store}`] = figure(times!.median)
    ratios[`${end}${size}${store}Cpu`] = figure(cpus!.median)
  }
  return ratios
}

/** Adds and claims these jobs in queues of this name, then settles all of them. Only that is measured. */
async function lapOf(store: Store, name: string, end: End, jobs: number, size: number, cpu: ServerCpu): Promise<Lap> {
  const queues = { joins: `joins-${name}`, rows: `rows-${name}` }
  for (const queue of Object.values(queues))
    await store.open([{ name: queue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
  await enqueue(store, queues, end === 'reported' || end === 'joined', jobs)
  const settles: SettleItem[][] = []
  for (let left = jobs; left > 0; left -= size) {
    const { claims } = await store.claim([{ queue: queues.rows, limit: size }], { worker: 'bench', leaseMs: 600_000 })
    settles.push(claims.map((claim) => settleOf(end, claim)))
  }
  const [server, node, startedAt] = [await cpu(), nodeCpuMs(), performance.now()]
  for (const items of settles) await store.settle(items)
  const [ms, nodeMs, serverMs] = [performance.now() - startedAt, nodeCpuMs() - node, (await cpu()) - server]
  return { ms, nodeMs, serverMs, cpuMs: nodeMs + serverMs }
}

function settleOf(end: End, { queue, id, fence }: ClaimKey): SettleItem {
  const item = { queue, id, fence, kind: 'complete' } as const
  if (end === 'kept') return { ...item, result: { payload: result, keepMs: 3_600_000 } }
  return end === 'joined' ? { ...item, result: { payload: result, onlyForJoins: true } } : item
}

interface Queues {
  readonly joins: string
  readonly rows: string
}

async function enqueue(store: Store, { joins: home, rows }: Queues, areMembers: boolean, jobs: number): Promise<void> {
  const of = { onDead: 'fail', keepsResults: true } as const
  const set = { ...of, name: 'all', queue: rows, ids: 'join.all', isMany: true, size: jobs }
  const key = { queue: home, id: 'join' }
  const blank = { task: 'blank', payload: '{"n":1234}', priority: 0, rememberMs: 0 }
  if (areMembers)
    await store.enqueue([
      {
        callId: `${home} join`,
        queue: home,
        jobs: [{ ...blank, id: key.id, join: { sets: [set], sealWithinMs: 3_600_000 } }],
      },
    ])
  for (let from = 0; from < jobs; from += 250) {
    const some = Array.from({ length: Math.min(250, jobs - from) }, (_, i) => {
      const number = from + i
      const memberOf = areMembers ? { memberOf: [{ ...of, join: key, set: set.name, number }] } : {}
      return { ...blank, id: memberId(set, number), ...memberOf }
    })
    await store.enqueue([{ callId: `${rows}-${from}`, queue: rows, hasNewIds: true, jobs: some }])
  }
}

function nodeCpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
