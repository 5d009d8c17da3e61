/**
 * Proof of clock steps. The wall clock of a SQLite store and of a Redis server is set back by 5 s, by 60 s and by an
 * hour, and forward by an hour, while three processes claim throttled, grouped, ordered, delayed and plain jobs. No
 * window holds too many starts. Nothing stops for longer than one window and a second, counted from the first claim
 * after the step. The order of jobs is kept. The proof takes about three minutes and needs gcc.
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startRedis } from 'millrace/store-testing'
import type { EnqueueCall, NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { forkedProgram } from '../forked-program.js'
import type { Report, Summary } from '../report.js'
import { ClockShim } from './clock-shim.js'
import type { Order, Start, Words } from './clock-steps-claimant.js'

export const seed = 0

const steps = [-5_000, -60_000, -3_600_000, 3_600_000]
const windowMs = 2_000
const limit = 5
const groupLimit = 2
const delayMs = 500
const warmMs = 3_000
const afterMs = 11_000
const tickMs = 100
/** Time that a busy machine may need for a claim, a ring and a wake-up. */
const slackMs = 1_000

const plain = { kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
const rule = (most: number) => [{ limit: most, windowMs, moderate: false }]
const queues: readonly QueueSettings[] = [
  { ...plain, name: 'throttled', throttle: { scope: 'throttled', by: 'queue', rules: rule(limit) } },
  { ...plain, name: 'grouped', throttle: { scope: 'grouped', by: 'group', rules: rule(groupLimit) } },
  { ...plain, name: 'delayed' },
  { ...plain, name: 'plain' },
  { ...plain, name: 'orders', kind: 'ordered', shards: 2 },
  { ...plain, name: 'kept', kind: 'ordered', shards: 1 },
]
const busy = queues.map(({ name }) => name).filter((name) => name !== 'kept')
const mono = () => Number(process.hrtime.bigint() / 1_000n) / 1_000
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

interface Told {
  readonly starts: Start[]
  readonly asks: { readonly from: number; readonly to: number }[]
  readonly errors: string[]
}

/** Three processes that claim, and one that enqueues. */
class Crew {
  readonly told: Told = { starts: [], asks: [], errors: [] }
  readonly #processes: ChildProcess[] = []
  #jobs = 0

  static async start(words: Omit<Words, 'name'>, env: Readonly<Record<string, string>>): Promise<Crew> {
    const crew = new Crew()
    const program = join(import.meta.dirname, 'clock-steps-claimant.ts')
    for (const name of ['producer', 'w1', 'w2', 'w3'])
      crew.#processes.push(forkedProgram(program, [JSON.stringify({ ...words, name })], { env }))
    await Promise.all(crew.#processes.map((one) => once(one, 'message')))
    for (const one of crew.#processes)
      one.on('message', ({ starts, asked, error }: { starts?: Start[]; asked?: Told['asks'][0]; error?: string }) => {
        crew.told.starts.push(...(starts ?? []))
        if (asked !== undefined) crew.told.asks.push(asked)
        if (error !== undefined) crew.told.errors.push(error)
      })
    for (const i of crew.#processes.keys()) await crew.#order(i, { word: 'open', queues })
    return crew
  }

  async claim(names: readonly string[]): Promise<void> {
    for (const i of [1, 2, 3]) await this.#order(i, { word: 'claim', queues: names })
  }

  async bring(queue: string, ...jobs: (Partial<NewJob> & { readonly payload: string })[]): Promise<void> {
    const given = jobs.map((job) => ({ task: 'it', priority: 0, rememberMs: 0, id: String(++this.#jobs), ...job }))
    const calls: EnqueueCall[] = [{ callId: `call-${this.#jobs}-${queue}`, queue, jobs: given }]
    await this.#order(0, { word: 'enqueue', calls })
  }

  /**
   * Enqueues some of everything, each kind at its own times. The throttled queues always have more jobs than they may
   * start.
   */
  async bringForMs(forMs: number, due: Map<string, number>, brought: Map<string, number>): Promise<void> {
    const until = mono() + forMs
    for (let n = 0; mono() < until; n += 1) {
      const id = `d${++this.#jobs}`
      due.set(id, mono() + delayMs)
      await this.bring('delayed', { id, payload: '1', delayMs })
      const plain = String(this.#jobs)
      await this.bring('plain', { payload: plain })
      brought.set(`plain ${plain}`, mono())
      const payload = String(this.#jobs)
      await this.bring('orders', { id: `o${n % 3}`, payload })
      brought.set(`orders ${payload}`, mono())
      await this.bring('throttled', { payload: '1' })
      await this.bring('grouped', { payload: '1', group: `g${n % 2}` })
      await pause(tickMs)
    }
  }

  async stop(): Promise<void> {
    const ended = this.#processes.map((one) => once(one, 'exit'))
    for (const one of this.#processes) one.send({ word: 'stop' } satisfies Order)
    await Promise.all(ended)
  }

  async #order(i: number, order: Order): Promise<void> {
    const process = this.#processes[i]!
    const done = new Promise<void>((resolve) => {
      const hear = (message: { done?: boolean }) => {
        if (!message.done) return
        process.off('message', hear)
        resolve()
      }
      process.on('message', hear)
    })
    process.send(order)
    await done
  }
}

export async function prove(report: Report): Promise<Summary> {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-steps-'))
  const shim = ClockShim.made(directory)
  const summary: Record<string, unknown> = {}
  try {
    for (const stepMs of steps) {
      shim.set(0)
      const file = join(directory, `step${stepMs}`, 'jobs.db')
      summary[`sqlite ${stepMs}`] = await stepped(report, `SQLite, ${stepMs} ms`, { file }, shim, stepMs)
    }
    for (const [stepMs, restarts] of [...steps.map((one) => [one, false] as const), [-3_600_000, true] as const]) {
      shim.set(0)
      Object.assign(process.env, shim.env)
      const server = await startRedis({ config: ['appendonly yes', 'appendfsync always'] }).finally(() => {
        for (const name of Object.keys(shim.env)) delete process.env[name]
      })
      try {
        const title = `Redis, ${stepMs} ms${restarts ? ' and a restart' : ''}`
        const restart = async () => {
          Object.assign(process.env, shim.env)
          await server.restart().finally(() => {
            for (const name of Object.keys(shim.env)) delete process.env[name]
          })
        }
        const { url } = server
        summary[title] = await stepped(report, title, { url }, shim, stepMs, restarts ? restart : undefined)
      } finally {
        await server.stop()
      }
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
  return summary
}

async function stepped(
  report: Report,
  title: string,
  words: Omit<Words, 'name'>,
  shim: ClockShim,
  stepMs: number,
  restart?: () => Promise<void>,
): Promise<Summary> {
  const crew = await Crew.start(words, words.file === undefined ? {} : shim.env)
  const due = new Map<string, number>()
  const brought = new Map<string, number>()
  await crew.bring('throttled', ...Array.from({ length: 60 }, () => ({ payload: '1' })))
  for (const group of ['g0', 'g1'])
    await crew.bring('grouped', ...Array.from({ length: 30 }, () => ({ payload: '1', group })))
  await crew.claim(busy)
  await crew.bringForMs(warmMs, due, brought)
  await crew.bring('kept', { id: 'k', payload: '1' }, { id: 'k', payload: '2' })
  const steppedAt = mono()
  shim.set(stepMs)
  await restart?.()
  await crew.bring('kept', { id: 'k', payload: '3' }, { id: 'k', payload: '4' })
  await crew.bringForMs(afterMs, due, brought)
  // Jobs whose due time the step delayed run when the clock is right again. That is another step, forward.
  const judgedTo = mono()
  if (stepMs < 0) shim.set(0)
  await pause(delayMs + slackMs)
  await crew.claim(['kept'])
  await pause(slackMs)
  await crew.stop()
  return judged(report, title, crew.told, {
    steppedAt,
    judgedTo,
    stepMs,
    due,
    brought,
    isRedis: words.file === undefined,
  })
}

interface Scene {
  readonly steppedAt: number
  readonly judgedTo: number
  readonly stepMs: number
  readonly due: ReadonlyMap<string, number>
  /** The time at which each plain job and each ordered payload was accepted, by its queue and payload. */
  readonly brought: ReadonlyMap<string, number>
  readonly isRedis: boolean
}

function judged(report: Report, title: string, { starts, asks, errors }: Told, scene: Scene): Summary {
  const { steppedAt, judgedTo, stepMs, due, brought, isRedis } = scene
  const of = (queue: string, group?: string) =>
    starts.filter((one) => one.queue === queue && (group === undefined || one.group === group))
  const limited = (queue: string, group?: string) => of(queue, group).filter(({ to }) => to < judgedTo)
  // A step forward ends windows early, once, if it is the clock of a server: see docs/throttling.md.
  const allowance = isRedis && stepMs > 0 ? 2 : 1
  const throttled = mostCertain(limited('throttled'))
  const grouped = Math.max(mostCertain(limited('grouped', 'g0')), mostCertain(limited('grouped', 'g1')))
  report.claim(
    `${title}: no window of ${windowMs} ms holds more than ${limit * allowance}: ${throttled}`,
    throttled <= limit * allowance,
  )
  report.claim(
    `${title}: none of a group more than ${groupLimit * allowance}: ${grouped}`,
    grouped <= groupLimit * allowance,
  )

  const noticedAt = Math.min(...asks.filter(({ from }) => from >= steppedAt).map(({ to }) => to))
  const still = (list: readonly Start[], since: number) => longestGap(list, since, judgedTo)
  const gaps = {
    throttled: still(of('throttled'), noticedAt),
    g0: still(of('grouped', 'g0'), noticedAt),
    g1: still(of('grouped', 'g1'), noticedAt),
  }
  for (const [what, gap] of Object.entries(gaps))
    report.claim(
      `${title}: ${what} stands still for at most ${windowMs + slackMs} ms: ${Math.round(gap)}`,
      gap <= windowMs + slackMs,
    )
  const free = { plain: longestWait(of('plain'), brought), orders: longestWait(of('orders'), brought) }
  for (const [what, wait] of Object.entries(free))
    report.claim(`${title}: of ${what} each waits for at most ${slackMs} ms: ${Math.round(wait)}`, wait <= slackMs)

  const delayed = of('delayed')
  const early = stepMs > 0 ? [] : delayed.filter(({ id, to }) => to < judgedTo && to < due.get(id)! - delayMs / 10)
  report.claim(
    `${title}: of ${due.size} delayed jobs all start, none early: ${delayed.length}, ${early.length}`,
    delayed.length === due.size && early.length === 0,
  )

  const orders = new Map<string, number[]>()
  for (const { id, payloads } of [...of('orders')].sort((a, b) => a.from - b.from))
    orders.set(id, [...(orders.get(id) ?? []), ...payloads.map(Number)])
  const isSorted = [...orders.values()].every((of) => of.every((n, i) => i === 0 || n > of[i - 1]!))
  report.claim(`${title}: payloads of an id come in the order in which they were enqueued`, isSorted)
  const kept = of('kept').flatMap(({ payloads }) => payloads)
  report.claim(`${title}: so do those that waited over the step: ${kept.join(' ')}`, kept.join(' ') === '1 2 3 4')
  if (errors.length > 0) report.say(`${title}: ${errors.length} calls failed, such as ${errors[0]}`)
  const noticedMs = Math.round(noticedAt - steppedAt)
  return { starts: starts.length, throttled, grouped, noticedMs, gaps: { ...gaps, ...free } }
}

/** The largest number of starts that certainly are in one closed window. */
function mostCertain(list: readonly Start[]): number {
  const sorted = [...list].sort((a, b) => a.from - b.from)
  return Math.max(
    0,
    ...sorted.map(({ from }) => sorted.filter((one) => one.from >= from && one.to <= from + windowMs).length),
  )
}

/** The longest time from the answer of an enqueue to the claim. A job that never started took infinitely long. */
function longestWait(list: readonly Start[], brought: ReadonlyMap<string, number>): number {
  const started = new Map(list.flatMap(({ queue, payloads, from }) => payloads.map((one) => [`${queue} ${one}`, from])))
  const [queue] = list.map((one) => one.queue)
  const own = [...brought].filter(([key]) => key.startsWith(`${queue} `))
  return Math.max(...own.map(([key, at]) => (started.get(key) ?? Number.POSITIVE_INFINITY) - at))
}

/** The longest time in which certainly nothing started. */
function longestGap(list: readonly Start[], since: number, until: number): number {
  const instants = [since, ...list.map(({ to }) => to).filter((at) => at > since && at < until), until].sort(
    (a, b) => a - b,
  )
  return Math.max(...instants.slice(1).map((at, i) => at - instants[i]!))
}
