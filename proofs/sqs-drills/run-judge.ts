/** The judge of a chaos on SQS: what the ledger of the runs and the list of the faults say together. Pure. */

import { type Fault, leaseMs } from '../crew.js'
import type { Run } from './run-ledger.js'

export interface RunEvidence {
  /** In the order in which they began. */
  readonly runs: readonly Run[]
  readonly faults: readonly Fault[]
  /** They are numbered 0 … one less than this. */
  readonly jobs: number
  /** Jobs of which SQS delivered a copy. */
  readonly copied: ReadonlySet<number>
}

/** Why a job was run again. `unknown`: none of the reasons that SQS promises nothing against. */
type Cause = 'killed' | 'stopped' | 'copied' | 'unknown'

export interface RunJudgement {
  readonly runs: number
  /** Jobs that no handler has done. */
  readonly lost: number
  /** Jobs that were begun more than once, and by what. */
  readonly again: number
  readonly byCause: Readonly<Record<Cause, number>>
  /** Runs of one lane at the same time, by whether one of them had outlived its lease. */
  readonly overlaps: { readonly outlived: number; readonly others: readonly string[] }
  /** Jobs of a lane that were first done after one that was sent later. */
  readonly disorders: readonly string[]
}

/** A delete waits 100 ms for others, and a busy machine takes its time to send it. */
const settleMs = 1_000

export function runJudgement({ runs, faults, jobs, copied }: RunEvidence): RunJudgement {
  const byJob = new Map<number, Run[]>()
  for (const run of runs) for (const job of run.jobs) byJob.set(job, [...(byJob.get(job) ?? []), run])
  const numbers = Array.from({ length: jobs }, (_, n) => n)
  const again = [...byJob].filter(([, some]) => some.length > 1)
  const byCause = { killed: 0, stopped: 0, copied: 0, unknown: 0 }
  for (const [job, some] of again) {
    if (some.some((run) => wasKilled(run, faults))) byCause.killed += 1
    else if (some.some((run) => outlivedLease(run, faults))) byCause.stopped += 1
    else byCause[copied.has(job) ? 'copied' : 'unknown'] += 1
  }
  return {
    runs: runs.length,
    lost: numbers.filter((n) => !byJob.get(n)?.some(({ endedAt }) => endedAt !== undefined)).length,
    again: again.length,
    byCause,
    overlaps: overlaps(runs, faults),
    disorders: disorders(runs),
  }
}

/** Faults of its worker before the run could be settled. */
function faultsOf({ worker, endedAt = Number.POSITIVE_INFINITY }: Run, faults: readonly Fault[]): Fault[] {
  return faults.filter((fault) => fault.worker === worker && fault.at <= endedAt + settleMs)
}

function wasKilled(run: Run, faults: readonly Fault[]): boolean {
  return faultsOf(run, faults).some(({ kind, at }) => kind === 'kill' && at >= run.claimedAt)
}

/** A poll that was answered meanwhile is read when the worker goes on: its messages have been hidden for as long. */
function outlivedLease(run: Run, faults: readonly Fault[]): boolean {
  return faultsOf(run, faults).some(({ kind, endedAt = 0 }) => kind === 'stop' && endedAt + leaseMs >= run.claimedAt)
}

type Span = readonly [from: number, to: number]

/** When the handler was executed: not while its worker was stopped, nor after it was killed. */
function executed({ worker, startedAt, endedAt = Number.POSITIVE_INFINITY }: Run, faults: readonly Fault[]): Span[] {
  const spans: Span[] = []
  let from = startedAt
  for (const { kind, at, endedAt: onAt = 0 } of faults.filter((fault) => fault.worker === worker)) {
    if (at >= endedAt || (kind === 'stop' && onAt <= from)) continue
    if (at > from) spans.push([from, at])
    if (kind === 'kill') return spans
    from = onAt
  }
  return [...spans, [from, endedAt]]
}

function overlaps(runs: readonly Run[], faults: readonly Fault[]): RunJudgement['overlaps'] {
  let outlived = 0
  const others: string[] = []
  for (const some of byLane(runs).values()) {
    const spans = some.map((run) => executed(run, faults))
    for (const [i, run] of some.entries())
      for (let j = i + 1; j < some.length; j += 1) {
        const isOverlap = spans[i]!.some(([from, to]) => spans[j]!.some((other) => from < other[1] && other[0] < to))
        if (!isOverlap) continue
        if ([run, some[j]!].some((one) => outlivedLease(one, faults))) outlived += 1
        else others.push(`${told(run)} and ${told(some[j]!)}`)
      }
  }
  return { outlived, others }
}

function disorders(runs: readonly Run[]): string[] {
  const found: string[] = []
  for (const some of byLane(runs).values()) {
    const firstDone = new Map<number, { run: Run; at: number }>()
    for (const run of some)
      for (const job of run.jobs) {
        const { endedAt: at } = run
        if (at !== undefined && at < (firstDone.get(job)?.at ?? Number.POSITIVE_INFINITY))
          firstDone.set(job, { run, at })
      }
    let latest: { run: Run; at: number } | undefined
    for (const [, done] of [...firstDone].sort(([a], [b]) => a - b)) {
      if (latest !== undefined && done.at < latest.at) found.push(`${told(done.run)} before ${told(latest.run)}`)
      else latest = done
    }
  }
  return found
}

function told({ lane, jobs, worker, claimedAt, startedAt, endedAt = 0 }: Run): string {
  return `${lane} ${jobs} by ${worker} claimed ${claimedAt}, ${startedAt} … ${endedAt}`
}

function byLane(runs: readonly Run[]): Map<string, Run[]> {
  const lanes = new Map<string, Run[]>()
  for (const run of runs) {
    const some = lanes.get(run.lane)
    if (some === undefined) lanes.set(run.lane, [run])
    else some.push(run)
  }
  return lanes
}
