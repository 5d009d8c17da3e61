/**
 * The judge of the second runs: why each run of a job that had run before was made, by the lines of effects, the faults
 * of processes and those of the store. Pure.
 */

import type { EffectLine, Kind } from './effect-lines.js'
import type { Halt, Leave } from './everything-crew.js'

/** The store was away, or locked, from the one instant to the other. */
export interface StoreSpan {
  readonly name: string
  readonly from: number
  readonly until: number
}

export interface SecondRunEvidence {
  /** In the order of their instants. */
  readonly lines: readonly EffectLine[]
  readonly halts: readonly Halt[]
  readonly leaves: readonly Leave[]
  readonly storeSpans: readonly StoreSpan[]
  readonly leaseMs: number
}

export interface SecondRun {
  readonly kind: Kind
  readonly cause: string
  /** The run before had done its work. */
  readonly isDone: boolean
  /** Whether its cause is known, and otherwise what is known of it. */
  readonly unknown?: string
}

interface Run {
  readonly pid: number
  readonly kind: Kind
  readonly id: string
  readonly fence: number
  readonly from: number
  endedAt?: number
}

export const unknownCause = 'unknown'
/** A worker hears after the store has acted, on a busy machine. */
const heardMs = 1_000
const deployed = 'put back: the grace of a deploy was over'

/** For each run of a job that had run before, why. */
export function secondRuns(evidence: SecondRunEvidence): SecondRun[] {
  const { lines } = evidence
  const told = grouped(
    lines.filter(({ what }) => what === 'told'),
    ({ kind, id }) => `${kind} ${id}`,
  )
  const completed = grouped(
    lines.filter(({ what }) => what === 'completed'),
    ({ kind, id }) => `${kind} ${id}`,
  )
  const found: SecondRun[] = []
  for (const [job, runs] of runsByJob(lines)) {
    for (let i = 1; i < runs.length; i += 1) {
      const [before, after] = [runs[i - 1]!, runs[i]!]
      const about = told.get(jobOf(before)) ?? []
      const worker = workerOf(before, about)
      const words = about.filter(({ pid, at }) => pid === worker && at >= before.from && at <= after.from + heardMs)
      const taken = (completed.get(jobOf(before)) ?? []).find(({ at }) => at >= before.from && at < after.from)
      const isDone = before.endedAt !== undefined && before.endedAt <= after.from
      const cause = taken === undefined ? causeOf(before, after, { worker, words }, evidence) : undefined
      const unknown =
        cause === undefined
          ? `${job}: ${tellRun(before)}, then ${tellRun(after)}; ${taken ? `completed at ${taken.at}; ` : ''}told ${words.map(({ at, more }) => `${more} at ${at}`)}`
          : undefined
      found.push({
        kind: before.kind,
        cause: cause ?? unknownCause,
        isDone,
        ...(unknown === undefined ? {} : { unknown }),
      })
    }
  }
  return found
}

function causeOf(
  before: Run,
  after: Run,
  { worker, words }: { readonly worker: number; readonly words: readonly EffectLine[] },
  { halts, leaves, storeSpans, leaseMs, lines }: SecondRunEvidence,
): string | undefined {
  const released = words.find(({ more }) => more.startsWith('job.released'))
  if (released?.more === 'job.released|interrupted') return deployed
  if (released !== undefined) return `put back: ${released.more.slice('job.released|'.length)}`
  const own = halts.filter(({ pid }) => pid === before.pid || pid === worker)
  const kill = own.find(({ kind, from }) => kind === 'kill' && from >= before.from && from <= after.from)
  if (kill !== undefined) {
    if (before.kind === 'long') return kill.pid === worker ? 'killed with its worker' : 'its own process was killed'
    return before.endedAt === undefined ? 'killed while it ran' : 'killed between effect and settle'
  }
  if (leaves.some(({ pid, at }) => pid === worker && at >= before.from && at <= after.from)) return deployed
  const failed = words.find(({ more }) => more.startsWith('job.failed'))
  if (failed !== undefined) {
    const isAway = storeSpans.some((span) => meets(span, before.from, failed.at, leaseMs))
    return isAway ? 'its handler failed for want of the store' : `its handler failed: ${failed.more.slice(11, 60)}`
  }
  const isOutlived = ({ kind, from, until }: Halt) =>
    kind === 'stop' && until - from >= leaseMs / 2 && from <= after.from && until >= before.from - leaseMs
  if (own.some(isOutlived)) return 'stopped beyond its lease'
  // A process that was stopped when it held the lock of the file, or a lease that could not be renewed meanwhile.
  const span = storeSpans.find((one) => one.until - one.from >= leaseMs / 2 && meets(one, before.from, after.from, 0))
  if (span !== undefined) return `the store was away beyond the lease: ${span.name}`
  const blocked = lines.find(
    ({ pid, more, at }) => pid === worker && more.startsWith('loop.blocked') && at >= before.from && at <= after.from,
  )
  if (blocked !== undefined) return 'its loop stood still beyond the lease'
  return undefined
}

function meets({ from, until }: StoreSpan, since: number, to: number, graceMs: number): boolean {
  return from <= to && until + graceMs >= since
}

/** The runs of each job, in their order; of an ordered id those of each revision. */
function runsByJob(lines: readonly EffectLine[]): Map<string, Run[]> {
  const byJob = new Map<string, Run[]>()
  const open = new Map<string, Run>()
  for (const { pid, what, at, kind, id, fence, more } of lines) {
    const key = `${pid} ${kind} ${id} ${fence}`
    if (what === 'begun') {
      const run: Run = { pid, kind, id, fence, from: at }
      open.set(key, run)
      const jobs = kind === 'ordered' ? more.split(',').map((rev) => `ordered ${id}:${rev}`) : [`${kind} ${id}`]
      for (const job of jobs) byJob.set(job, [...(byJob.get(job) ?? []), run])
    } else if (what === 'ended') {
      const run = open.get(key)
      if (run !== undefined) run.endedAt = at
      open.delete(key)
    }
  }
  return byJob
}

/** How long a store took to take a completion, from the end of the handler on, in ms, sorted. */
export function settleTimes(lines: readonly EffectLine[]): number[] {
  const ended = new Map<string, number>()
  const times: number[] = []
  for (const { pid, what, at, kind, id } of lines) {
    const key = `${pid} ${kind} ${id}`
    if (what === 'ended') ended.set(key, at)
    else if (what === 'completed' && ended.has(key)) times.push(at - ended.get(key)!)
  }
  return times.sort((a, b) => a - b)
}

/** For each kill of a worker: how many runs it had ended whose completion nobody had been told. */
export function unsettledAtKills({ lines, halts }: Pick<SecondRunEvidence, 'lines' | 'halts'>): number[] {
  const kills = halts.filter(({ kind }) => kind === 'kill')
  return kills.map(({ pid, from }) => {
    const unsettled = new Set<string>()
    for (const line of lines) {
      if (line.pid !== pid || line.at > from) continue
      if (line.what === 'ended') unsettled.add(`${line.kind} ${line.id}`)
      else if (line.what === 'completed') unsettled.delete(`${line.kind} ${line.id}`)
    }
    return unsettled.size
  })
}

/** An isolated job runs in a process of its own: its worker is who last said that it starts it. */
function workerOf({ pid, from }: Run, about: readonly EffectLine[]): number {
  return about.findLast(({ more, at }) => more === 'job.started' && at <= from + heardMs)?.pid ?? pid
}

function jobOf({ kind, id }: Run): string {
  return `${kind} ${id}`
}

function tellRun({ pid, fence, from, endedAt }: Run): string {
  return `by ${pid} (fence ${fence}) ${from.toFixed(0)} … ${endedAt?.toFixed(0) ?? 'not ended'}`
}

function grouped<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}
