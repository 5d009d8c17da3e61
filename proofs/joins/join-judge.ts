/** The judge of the joins drill: compares the ledger, and what the store has in the end, with the plan. */

import type { JobState } from 'millrace'
import { type JoinPlan, nameOf, planOf, resultOf } from './join-plan.js'

/** What the store has of a join in the end. */
export interface JoinRest {
  readonly state: JobState | 'gone'
  readonly reason: string | undefined
}

export interface JoinsSeen {
  readonly completed: number
  readonly dead: number
  readonly cancelled: number
  /** Joins that ran although a member had not ended. */
  readonly early: readonly string[]
  /** Joins with a missing result, another one than that of their member, or an end that nobody has caused. */
  readonly foreign: readonly string[]
  /** Joins that wait, or were enqueued and are gone. */
  readonly stuck: readonly string[]
  /** Joins that are dead although no member of theirs had a reason. */
  readonly wronglyDead: readonly string[]
}

/** The names of the joins of rows of a plan, each with the name under which its rows were enqueued. */
function sumsOf(plan: JoinPlan): readonly (readonly [sum: string, rows: string])[] {
  const name = nameOf(plan)
  if (plan.tree === undefined) return [[name, name]]
  return [
    [`${name}-left`, `${name}-left`],
    [`${name}-right`, plan.tree === 'shared' ? `${name}-left` : `${name}-right`],
  ]
}

/** `rests`: of each join that was enqueued under its own name. */
export function judged(seed: number, joins: number, ledger: string, rests: ReadonlyMap<string, JoinRest>): JoinsSeen {
  const lines = ledger
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'))
  /** The first line at which something ended, died or was to be cancelled. */
  const first = { ends: new Map<string, number>(), dies: new Map<string, number>(), cancels: new Map<string, number>() }
  const given = new Map<string, { readonly at: number; readonly got: readonly string[] }[]>()
  for (const [at, [what, name, more]] of lines.entries()) {
    if (what === 'joins') given.set(name!, [...(given.get(name!) ?? []), { at, got: JSON.parse(more!) }])
    else if (what === 'ends' || what === 'dies' || what === 'cancels')
      if (!first[what].has(name!)) first[what].set(name!, at)
  }
  const seen = { early: [] as string[], foreign: [] as string[], stuck: [] as string[], wronglyDead: [] as string[] }
  const endedBefore = (kind: keyof typeof first, name: string, at: number) =>
    (first[kind].get(name) ?? Number.POSITIVE_INFINITY) < at
  const counts = { completed: 0, dead: 0, cancelled: 0 }
  for (let number = 0; number < joins; number += 1) {
    const plan = planOf(seed, number)
    const name = nameOf(plan)
    const { state, reason } = rests.get(name) ?? { state: 'gone', reason: undefined }
    if (state === 'completed' || state === 'dead' || state === 'cancelled') counts[state] += 1
    else seen.stuck.push(`${name} ${state}`)
    const rows = (of: string) => Array.from({ length: plan.size }, (_, n) => resultOf({ of, n }))
    for (const [sum, of] of sumsOf(plan))
      for (const { at, got } of given.get(sum) ?? []) {
        if (got.length !== plan.size) seen.foreign.push(`${sum}: ${got.length} of ${plan.size}`)
        for (const [n, value] of rows(of).entries()) {
          const fate = got[n]
          if (fate === value) {
            if (!endedBefore('ends', value, at)) seen.early.push(`${sum}: ${value}`)
          } else if (fate === '(dead)') {
            if (!endedBefore('dies', value, at) && !endedBefore('cancels', value, at))
              seen.early.push(`${sum}: ${value}`)
          } else if (fate !== '(cancelled)' || !endedBefore('cancels', value, at)) seen.foreign.push(`${sum}: ${fate}`)
        }
      }
    if (plan.tree !== undefined)
      for (const { at, got } of given.get(name) ?? []) {
        const wanted = sumsOf(plan).map(([sum]) => `sum of ${sum}`)
        if (got.join() !== wanted.join()) seen.foreign.push(`${name}: ${got.join()}`)
        if (wanted.some((value) => !endedBefore('ends', value, at))) seen.early.push(name)
      }
    const someRow = (of: string) => rows(of).some((value) => first.dies.has(value) || first.cancels.has(value))
    const mayDie = sumsOf(plan).some(([sum, of]) => someRow(of) || first.cancels.has(sum)) || first.cancels.has(name)
    if (state === 'dead' && !mayDie) seen.wronglyDead.push(`${name} ${reason}`)
  }
  return { ...counts, ...seen }
}
