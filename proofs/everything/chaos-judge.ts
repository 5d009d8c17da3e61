/** The judge of the chaos: what the lines of effects, of all processes, say about the promises. It asks no store. Pure. */

import type { Report } from '../report.js'
import type { EffectLine, Kind } from './effect-lines.js'
import type { Halt } from './everything-crew.js'

export interface Evidence {
  /** In the order of their instants. */
  readonly lines: readonly EffectLine[]
  readonly halts: readonly Halt[]
  readonly leaseMs: number
  readonly startsLimit: { readonly limit: number; readonly windowMs: number }
}

export interface Judgement {
  readonly accepted: number
  readonly runs: number
  /** Runs of jobs that had run before: after a kill, or a stop that outlasted the lease. */
  readonly again: number
  /** Accepted, and done by nobody. */
  readonly lost: readonly string[]
  /** Of which the store took two completions. */
  readonly twice: readonly string[]
  /** Two runs of a job, an id or a group at a time. `outlived`: one of them went on in a process that had been stopped for longer than its lease. */
  readonly overlaps: { readonly outlived: number; readonly others: readonly string[] }
  /** Windows with more starts than their limit. `late`: one of them was reported to be late. */
  readonly windows: { readonly late: number; readonly others: readonly string[] }
  /** Revisions that were first done after one that was sent later. */
  readonly disorders: readonly string[]
  readonly byKind: Readonly<Record<string, number>>
}

/** Claims that no promise is broken. The function that it returns claims that there are none of what was found. */
export function claimSound(
  report: Report,
  name: string,
  { accepted, lost, twice, overlaps, windows, disorders }: Judgement,
  deaths: readonly string[],
): (what: string, found: readonly string[]) => void {
  const tell = (found: readonly string[]) => (found.length === 0 ? '' : `: ${found.slice(0, 5).join('; ')}`)
  const claimNone = (what: string, found: readonly string[]) =>
    report.claim(`${name}: ${found.length} ${what}${tell(found)}`, found.length === 0)
  claimNone(`of ${accepted.toLocaleString('en')} accepted jobs are lost`, lost)
  claimNone('jobs were completed twice', twice)
  claimNone(
    `overlaps, but for ${overlaps.outlived} with one that was stopped for longer than its lease`,
    overlaps.others,
  )
  claimNone(`windows are exceeded, but for ${windows.late} about starts that were reported as late`, windows.others)
  claimNone('revisions out of order', disorders)
  claimNone('processes died by themselves', deaths)
  return claimNone
}

interface Run {
  readonly pid: number
  readonly kind: Kind
  readonly id: string
  readonly fence: number
  readonly more: string
  readonly from: number
  until: number
  isEnded: boolean
  isCompleted: boolean
}

export function chaosJudgement({ lines, halts, leaseMs, startsLimit }: Evidence): Judgement {
  const haltsOf = grouped(halts, ({ pid }) => pid)
  const runs = runsIn(lines, haltsOf)
  const accepted = lines.filter(({ what }) => what === 'accepted')
  const done = new Map<string, { at: number; times: number }>()
  for (const run of runs)
    for (const job of jobsOf(run)) {
      const before = done.get(job)
      if (run.isEnded && before === undefined) done.set(job, { at: run.until, times: run.isCompleted ? 1 : 0 })
      else if (run.isCompleted && before !== undefined) before.times += 1
    }
  const acceptedJobs = new Set(accepted.map(({ kind, id }) => `${kind} ${id}`))
  const byKind: Record<string, number> = {}
  for (const [job] of done) {
    const kind = job.slice(0, job.indexOf(' '))
    byKind[kind] = (byKind[kind] ?? 0) + 1
  }
  return {
    accepted: acceptedJobs.size,
    runs: runs.length,
    again: runs.reduce((sum, run) => sum + jobsOf(run).length, 0) - done.size,
    lost: [...acceptedJobs].filter((job) => !done.has(job)),
    twice: [...done].filter(([, { times }]) => times > 1).map(([job]) => job),
    overlaps: overlapsIn(runs, haltsOf, leaseMs),
    windows: windowsIn(runs, lines, startsLimit),
    disorders: disordersIn(runs),
    byKind,
  }
}

function jobsOf({ kind, id, more }: Run): string[] {
  return kind === 'ordered' ? more.split(',').map((rev) => `ordered ${id}:${rev}`) : [`${kind} ${id}`]
}

/** A run that was not ended lasted until its process was killed; where it was not, it is not known to have done anything. */
function runsIn(lines: readonly EffectLine[], haltsOf: ReadonlyMap<number, readonly Halt[]>): Run[] {
  const runs: Run[] = []
  const open = new Map<string, Run>()
  const last = new Map<string, Run>()
  for (const { pid, what, at, kind, id, fence, more } of lines) {
    const key = `${pid} ${kind} ${id} ${fence}`
    if (what === 'begun') {
      const killedAt = haltsOf.get(pid)?.find((halt) => halt.kind === 'kill')?.from ?? at
      const run = {
        pid,
        kind,
        id,
        fence,
        more,
        from: at,
        until: Math.max(at, killedAt),
        isEnded: false,
        isCompleted: false,
      }
      runs.push(run)
      open.set(key, run)
    } else if (what === 'ended') {
      const run = open.get(key)!
      Object.assign(run, { until: at, isEnded: true })
      open.delete(key)
      last.set(`${pid} ${kind} ${id}`, run)
    } else if (what === 'completed') {
      // Isolated jobs are run by one process and completed by the word of another.
      const run = last.get(`${pid} ${kind} ${id}`)
      if (run !== undefined) run.isCompleted = true
    }
  }
  return runs
}

type Span = readonly [from: number, to: number]

/** When it was executed: not while its process was stopped. */
function spansOf({ pid, from, until }: Run, haltsOf: ReadonlyMap<number, readonly Halt[]>): Span[] {
  const spans: Span[] = []
  let since = from
  for (const halt of haltsOf.get(pid) ?? []) {
    if (halt.from >= until || halt.until <= since) continue
    if (halt.from > since) spans.push([since, halt.from])
    since = halt.until
  }
  return since < until ? [...spans, [since, until]] : spans
}

function overlapsIn(
  runs: readonly Run[],
  haltsOf: ReadonlyMap<number, readonly Halt[]>,
  leaseMs: number,
): Judgement['overlaps'] {
  let outlived = 0
  const others: string[] = []
  const hasOutlived = (run: Run) =>
    (haltsOf.get(run.pid) ?? []).some(
      ({ kind, from, until }) => kind === 'stop' && from <= run.until && until + leaseMs >= run.from,
    )
  const look = (some: readonly Run[]) => {
    for (let i = 1; i < some.length; i += 1)
      for (let j = i - 1; j >= Math.max(0, i - 8); j -= 1) {
        const spans = spansOf(some[j]!, haltsOf)
        const meet = spansOf(some[i]!, haltsOf).some(([from, to]) =>
          spans.some((other) => from < other[1] && other[0] < to),
        )
        if (!meet) continue
        if (hasOutlived(some[i]!) || hasOutlived(some[j]!)) outlived += 1
        else others.push(`${told(some[j]!)} and ${told(some[i]!)}`)
      }
  }
  for (const some of grouped(runs, ({ kind, id }) => `${kind} ${id}`).values()) look(some)
  const ofGroups = runs.filter(({ kind }) => kind === 'grouped')
  for (const some of grouped(ofGroups, ({ more }) => more).values()) look(some)
  return { outlived, others }
}

/** A start that came later than it was allowed to is reported: the windows about it may hold one too many. */
function windowsIn(
  runs: readonly Run[],
  lines: readonly EffectLine[],
  { limit, windowMs }: Evidence['startsLimit'],
): Judgement['windows'] {
  let late = 0
  const others: string[] = []
  const lateIds = new Set(lines.filter(({ what }) => what === 'late').map(({ id }) => id))
  const throttled = runs.filter(({ kind }) => kind === 'throttled')
  for (const [group, some] of grouped(throttled, ({ more }) => more)) {
    for (let i = limit; i < some.length; i += 1) {
      const window = some.slice(i - limit, i + 1)
      const spread = window.at(-1)!.from - window[0]!.from
      if (spread > windowMs) continue
      if (window.some(({ id }) => lateIds.has(id))) late += 1
      else
        others.push(
          `${group}: ${window.length} starts within ${spread.toFixed(1)} ms from ${window[0]!.from.toFixed(1)}`,
        )
    }
  }
  return { late, others }
}

function disordersIn(runs: readonly Run[]): string[] {
  const found: string[] = []
  const ordered = runs.filter(({ kind }) => kind === 'ordered')
  for (const [id, some] of grouped(ordered, (run) => run.id)) {
    const firstDone = new Map<number, number>()
    for (const run of some) {
      const revs = run.more.split(',').map(Number)
      if (revs.some((rev, i) => i > 0 && rev <= revs[i - 1]!)) found.push(`${id} was given ${run.more}`)
      if (run.isEnded) for (const rev of revs) firstDone.set(rev, Math.min(firstDone.get(rev) ?? run.until, run.until))
    }
    let latest = 0
    for (const [rev, at] of [...firstDone].sort(([a], [b]) => a - b)) {
      if (at < latest) found.push(`${id}: revision ${rev} was done before one that was sent earlier`)
      latest = Math.max(latest, at)
    }
  }
  return found
}

function grouped<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}

function told({ pid, kind, id, fence, more, from, until, isEnded }: Run): string {
  return `${kind} ${id} ${more} (fence ${fence}, process ${pid}, ${from.toFixed(1)} to ${until.toFixed(1)}, ${isEnded ? 'ended' : 'not ended'})`
}
