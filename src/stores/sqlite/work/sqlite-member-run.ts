/**
 * Members of a join in a row, as text: one statement inserts all of them, and none is copied for the other thread as an
 * object. Nearly all members of a graph are such.
 */

import type { EnqueueCall, NewJob } from '../../contract/new-job.js'
import type { MemberOf } from '../../contract/new-join.js'
import { fromStored, toStored } from '../../rows/stored-text.js'
import { weightOf } from '../../rules/claim-weight.js'
import { type BareKind, fewestTogether, isBare } from './sqlite-bare-call.js'

/** Bare members of one set with new ids, and with numbers from that of `first` on. */
export interface MemberRun {
  readonly first: MemberOf
  /** What their ids have before the numbers. */
  readonly ids: string
  /** JSON: the stored payload of each. */
  readonly payloads: string
  readonly kind: BareKind
  readonly count: number
  /** The UTF-16 units of all payloads. */
  readonly units: number
  /** The weight of the heaviest job, in bytes. */
  readonly heaviest: number
}

/** A call of a graph. */
export interface SqliteGraphCall extends EnqueueCall {
  /** They come behind its jobs. */
  readonly runs?: readonly MemberRun[]
}

/** The call with its last jobs as runs, as far as they are such. */
export function graphCallOf(call: EnqueueCall): SqliteGraphCall {
  const { jobs } = call
  const runs: MemberRun[] = []
  let end = jobs.length
  while (call.hasNewIds && end > 0) {
    const from = beginOf(jobs, end)
    if (end - from < fewestTogether) break
    runs.unshift(runIn(jobs.slice(from, end)))
    end = from
  }
  return runs.length === 0 ? call : { ...call, jobs: jobs.slice(0, end), runs }
}

/** The index at which the run of members begins whose last one is before this one. */
function beginOf(jobs: readonly NewJob[], end: number): number {
  const last = jobs[end - 1]!
  const place = placeOf(last)
  if (place === undefined) return end
  const { join, set, number } = place
  const ids = last.id.slice(0, -String(number).length)
  let from = end
  while (from > 0) {
    const { [from - 1]: job } = jobs
    const own = placeOf(job!)
    const behind = number - (end - from)
    const isOfSet = own?.set === set && own.join.id === join.id && own.join.queue === join.queue
    if (!isOfSet || own.number !== behind || job!.id !== `${ids}${behind}`) break
    if (job!.task !== last.task || job!.rememberMs !== last.rememberMs) break
    from -= 1
  }
  return from
}

/** Its only place, if it is bare but for that. */
function placeOf(job: NewJob): MemberOf | undefined {
  const { memberOf, ...rest } = job
  return memberOf?.length === 1 && isBare(rest) ? memberOf[0] : undefined
}

function runIn(jobs: readonly NewJob[]): MemberRun {
  const { id, task, rememberMs, memberOf } = jobs[0]!
  const first = memberOf![0]!
  const payloads: string[] = []
  let [units, heaviest] = [0, 0]
  for (const job of jobs) {
    units += job.payload.length
    heaviest = Math.max(heaviest, weightOf(job))
    payloads.push(toStored(job.payload as string))
  }
  return {
    ...{ first, ids: id.slice(0, -String(first.number).length), payloads: JSON.stringify(payloads) },
    ...{ kind: { task, rememberMs }, count: jobs.length, units, heaviest },
  }
}

export function idsIn({ first, ids, count }: MemberRun): string[] {
  return Array.from({ length: count }, (_, i) => `${ids}${first.number + i}`)
}

export function membersIn(run: MemberRun): NewJob[] {
  const { first, kind, payloads } = run
  const ids = idsIn(run)
  return (JSON.parse(payloads) as string[]).map((payload, i) => ({
    ...{ id: ids[i]!, ...kind, payload: fromStored(payload), priority: 0 },
    memberOf: [{ ...first, number: first.number + i }],
  }))
}
