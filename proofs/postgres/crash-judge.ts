/** The judge of `postgres-crashes`: what producers and handlers wrote down, without asking the store. Pure. */

import type { EffectLine } from '../everything/effect-lines.js'

export interface CrashJudgement {
  /** Jobs and payloads whose enqueue was answered. */
  readonly accepted: { readonly plain: number; readonly ordered: number }
  /** Runs of jobs and of ordered ids, and those of jobs or ids with payloads that had run before. */
  readonly runs: number
  readonly runsAgain: number
  /** Jobs and payloads whose completion was confirmed. */
  readonly completed: number
  /** Accepted, and never run to an end. */
  readonly lost: readonly string[]
  /** Claimed after its completion was confirmed. */
  readonly cameBack: readonly string[]
  /** Claims that two processes were given under one fence. */
  readonly sharedFences: readonly string[]
  /** Runs of an ordered id while another ran. */
  readonly overlaps: readonly string[]
  /** Accepted payloads that were claimed before one of their id that had been accepted before them. */
  readonly disorders: readonly string[]
}

interface Run {
  readonly pid: number
  readonly name: string
  readonly fence: number
  /** Of a plain job: its name alone. */
  readonly payloads: readonly string[]
  readonly begunAt: number
  endedAt?: number
  isConfirmed: boolean
}

export function crashJudgement(lines: readonly EffectLine[]): CrashJudgement {
  const accepted = { plain: new Set<string>(), ordered: new Set<string>() }
  const runs: Run[] = []
  /** The latest run of each process and job. */
  const latest = new Map<string, Run>()
  for (const { pid, what, at, kind, id, fence, more } of lines) {
    const name = `${kind} ${id}`
    const own = `${pid} ${name}`
    if (what === 'accepted') accepted[kind as 'plain' | 'ordered'].add(name)
    else if (what === 'begun') {
      const payloads = kind === 'plain' ? [name] : more.split(',').map((n) => `${name}:${n}`)
      const run: Run = { pid, name, fence, payloads, begunAt: at, isConfirmed: false }
      runs.push(run)
      latest.set(own, run)
    } else if (what === 'ended') latest.get(own)!.endedAt = at
    else if (what === 'completed') latest.get(own)!.isConfirmed = true
  }
  const ended = new Set(runs.flatMap(({ endedAt, payloads }) => (endedAt === undefined ? [] : payloads)))
  const confirmed = confirmedFences(runs)
  const byName = new Map<string, Run[]>()
  for (const run of runs) {
    const some = byName.get(run.name)
    if (some === undefined) byName.set(run.name, [run])
    else some.push(run)
  }
  const ofIds = [...byName.values()].filter((some) => some[0]!.name.startsWith('ordered'))
  return {
    accepted: { plain: accepted.plain.size, ordered: accepted.ordered.size },
    runs: runs.length,
    runsAgain: [...byName.values()].reduce((sum, some) => sum + again(some), 0),
    completed: confirmed.size,
    lost: [...accepted.plain, ...accepted.ordered].filter((one) => !ended.has(one)),
    cameBack: runs.flatMap(({ payloads, fence }) =>
      payloads.filter((one) => fence > (confirmed.get(one) ?? Number.POSITIVE_INFINITY)),
    ),
    sharedFences: [...byName.values()].flatMap(sharedFences),
    overlaps: ofIds.flatMap(overlaps),
    disorders: ofIds.flatMap((some) => disorders(some, accepted.ordered)),
  }
}

/** The first fence under which the completion of each payload was confirmed. */
function confirmedFences(runs: readonly Run[]): Map<string, number> {
  const fences = new Map<string, number>()
  for (const { payloads, fence, isConfirmed } of runs)
    if (isConfirmed)
      for (const one of payloads) fences.set(one, Math.min(fence, fences.get(one) ?? Number.POSITIVE_INFINITY))
  return fences
}

function again(runs: readonly Run[]): number {
  const seen = new Set<string>()
  let count = 0
  for (const { payloads } of runs) {
    if (payloads.some((one) => seen.has(one))) count += 1
    for (const one of payloads) seen.add(one)
  }
  return count
}

function sharedFences(runs: readonly Run[]): string[] {
  const holders = new Map<number, number>()
  return runs.flatMap(({ pid, fence, name }) => {
    const other = holders.get(fence)
    holders.set(fence, pid)
    return other === undefined || other === pid ? [] : [`${name} under ${fence}`]
  })
}

/** A run that was killed has no end: how far it came is not known. */
function overlaps(runs: readonly Run[]): string[] {
  let busyUntil = Number.NEGATIVE_INFINITY
  return runs.flatMap(({ name, begunAt, endedAt = begunAt, fence }) => {
    const isOverlap = begunAt < busyUntil
    busyUntil = Math.max(busyUntil, endedAt)
    return isOverlap ? [`${name} under ${fence}`] : []
  })
}

/** A payload that was not accepted may have arrived at any time. Fences tell the order of claims. */
function disorders(runs: readonly Run[], accepted: ReadonlySet<string>): string[] {
  const seen = new Set<string>()
  let greatest = Number.NEGATIVE_INFINITY
  const found: string[] = []
  for (const { payloads } of runs.toSorted((a, b) => a.fence - b.fence))
    for (const one of payloads) {
      if (seen.has(one) || !accepted.has(one)) continue
      seen.add(one)
      const n = Number(one.slice(one.lastIndexOf(':') + 1))
      if (n < greatest) found.push(one)
      greatest = Math.max(greatest, n)
    }
  return found
}
