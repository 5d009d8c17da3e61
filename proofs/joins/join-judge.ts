/** The judge of the joins drill: compares the ledger, and what the store has in the end, with the plan. */

import type { JobState } from 'millrace'
import { type JoinPlan, joinsOf, type PlannedJoin, planOf, resultOf, rowsOf, sumOf } from './join-plan.js'

/** What the store has of a join in the end. */
export interface JoinRest {
  readonly state: JobState | 'gone'
  readonly reason: string | undefined
}

export interface JoinsSeen {
  readonly completed: number
  readonly dead: number
  readonly cancelled: number
  /** Joins that an operator has deleted. */
  readonly deleted: number
  /** Runs of joins in which a member had not completed. */
  readonly withLosses: number
  /** Joins that ran although a member had not ended. */
  readonly early: readonly string[]
  /** Joins with a missing result, another one than that of their member, or an end that nobody has caused. */
  readonly foreign: readonly string[]
  /** Joins that wait, or that nobody has deleted and are gone. */
  readonly stuck: readonly string[]
  /** Joins that are dead or cancelled although neither a member nor an operator is a reason. */
  readonly wronglyEnded: readonly string[]
}

interface Seen extends JoinsSeen {
  readonly early: string[]
  readonly foreign: string[]
  readonly stuck: string[]
  readonly wronglyEnded: string[]
}

/** The ledger: the first line at which something ended, died or was to be cancelled, and what each run of a join was given. */
class JoinLedger {
  readonly #first = new Map<string, number>()
  readonly #given = new Map<string, { readonly at: number; readonly got: readonly string[] }[]>()

  constructor(text: string) {
    for (const [at, line] of text.trimEnd().split('\n').entries()) {
      const [what, name, more] = line.split('\t')
      if (what === 'joins') this.#given.set(name!, [...this.runsOf(name!), { at, got: JSON.parse(more!) }])
      else if (!this.#first.has(`${what} ${name}`)) this.#first.set(`${what} ${name}`, at)
    }
  }

  /** Whether it is there, before this line if one is given. */
  has(what: 'ends' | 'dies' | 'cancels' | 'clears', name: string, before = Number.POSITIVE_INFINITY): boolean {
    return (this.#first.get(`${what} ${name}`) ?? Number.POSITIVE_INFINITY) < before
  }

  runsOf(join: string) {
    return this.#given.get(join) ?? []
  }
}

/** `rests`: of each join that was enqueued under its own name. */
export function judged(seed: number, joins: number, text: string, rests: ReadonlyMap<string, JoinRest>): JoinsSeen {
  const ledger = new JoinLedger(text)
  const seen = { completed: 0, dead: 0, cancelled: 0, deleted: 0, withLosses: 0 }
  const found: Seen = { ...seen, early: [], foreign: [], stuck: [], wronglyEnded: [] }
  for (let number = 0; number < joins; number += 1) {
    const plan = planOf(seed, number)
    const all = joinsOf(plan)
    for (const join of all) {
      judgeRuns(plan, join, ledger, found)
      if (ledger.runsOf(join.name).some(({ got }) => got.some((one) => one.startsWith('(')))) seen.withLosses += 1
    }
    const { state, reason } = rests.get(plan.name) ?? { state: 'gone', reason: undefined }
    const isEnded = ledger.has('cancels', plan.name)
    if (state === 'completed') {
      seen.completed += 1
      if (ledger.runsOf(plan.name).length === 0) found.foreign.push(`${plan.name} completed and never ran`)
    } else if (state === 'dead') {
      seen.dead += 1
      if (!mayDie(plan, all.at(-1)!, all, ledger)) found.wronglyEnded.push(`${plan.name} ${reason}`)
    } else if (state === 'cancelled') {
      seen.cancelled += 1
      if (!isEnded) found.wronglyEnded.push(`${plan.name} ${reason}`)
    } else if (state === 'gone' && isEnded) seen.deleted += 1
    else found.stuck.push(`${plan.name} ${state}`)
  }
  return { ...found, ...seen }
}

function judgeRuns({ size, form }: JoinPlan, join: PlannedJoin, ledger: JoinLedger, seen: Seen): void {
  const { name, rule, parts } = join
  const rows = join.rowsOf === undefined ? [] : rowsOf(join.rowsOf, size).map(resultOf)
  for (const { at, got } of ledger.runsOf(name)) {
    if (got.length !== rows.length + parts.length)
      seen.foreign.push(`${name}: ${got.length} of ${rows.length + parts.length}`)
    for (const [n, part] of parts.entries()) {
      const value = sumOf(part)
      if (got[rows.length + n] !== value) seen.foreign.push(`${name}: ${got[rows.length + n]} of ${part}`)
      else if (!ledger.has('ends', value, at)) seen.early.push(`${name}: ${part}`)
    }
    for (const [n, value] of rows.entries()) {
      const fate = got[n]
      const isCancelled = ledger.has('cancels', value, at)
      if (fate === value) {
        if (!ledger.has('ends', value, at)) seen.early.push(`${name}: ${value}`)
      } else if (rule !== 'go-on') seen.foreign.push(`${name}: ${fate} of ${value}`)
      else if (fate === '(dead)') {
        if (!ledger.has('dies', value, at) && !isCancelled) seen.early.push(`${name}: ${value}`)
      } else if (fate !== '(cancelled)' || !(isCancelled || (form === 'loose' && ledger.has('clears', 'loose', at))))
        seen.foreign.push(`${name}: ${fate} of ${value}`)
    }
  }
}

/**
 * Whether it may be dead in the end, when all that is broken was mended and all that is dead revived: a member is gone for
 * good, or an operator wanted it. A join that fails cancels its other members, and these are gone for good.
 */
function mayDie(plan: JoinPlan, join: PlannedJoin, all: readonly PlannedJoin[], ledger: JoinLedger): boolean {
  const { rule, parts } = join
  if (ledger.has('cancels', join.name)) return true
  const rows = join.rowsOf === undefined || rule === 'go-on' ? [] : rowsOf(join.rowsOf, plan.size).map(resultOf)
  if (rows.some((row) => ledger.has('cancels', row) || (rule === 'fail' && ledger.has('dies', row)))) return true
  return parts.some((part) => mayDie(plan, all.find(({ name }) => name === part)!, all, ledger))
}
