/** The judge of the steps drill: compares the ledger, and what the store has in the end, with the plan. */

import type { JobState } from 'millrace'
import { nameOf, planOf, type Version, waitsOf } from './step-plan.js'

export interface StepsSeen {
  readonly completed: number
  /** Calls of functions of steps; those that were made again because a run was cut before the result was stored. */
  readonly calls: number
  readonly again: number
  /** Runs that have begun under both versions of the code. */
  readonly across: number
  /** Signals that were heard, and waits that ended in vain. */
  readonly heard: number
  readonly inVain: number
  /** Functions of steps that were called after their result had been given out. */
  readonly calledAgain: readonly string[]
  /** Steps that gave another result than before, or one that no call of theirs had returned. */
  readonly changed: readonly string[]
  /** Signals that were answered as taken and not heard, or heard and never sent. */
  readonly lost: readonly string[]
  /** Signals that were heard by a run in two forms, or taken twice. */
  readonly twice: readonly string[]
  /** Runs that have not completed, or have not done all that their plan says. */
  readonly stuck: readonly string[]
}

/** What the ledger has of one run. */
class RunLines {
  /** The results of the calls, by step. */
  readonly calls = new Map<string, string[]>()
  /** The first result that was given out, by step. */
  readonly got = new Map<string, string>()
  readonly heard = new Map<string, string>()
  readonly sent = new Map<string, Set<string>>()
  /** The data that was answered as delivered or kept, by signal. */
  readonly taken = new Map<string, Set<string>>()
  /** The versions under which it has begun. */
  readonly begun = new Set<string>()
  versions: Version[] = []
}

/** `states`: of each run, in the store. */
export function judged(
  seed: number,
  runs: number,
  text: string,
  states: ReadonlyMap<string, JobState | 'gone'>,
): StepsSeen {
  const lines = new Map(Array.from({ length: runs }, (_, number) => [nameOf(number), new RunLines()]))
  const found = { calledAgain: [] as string[], changed: [] as string[], lost: [] as string[], twice: [] as string[] }
  for (const line of text.trimEnd().split('\n')) read(line.split('\t'), lines, found)
  const stuck: string[] = []
  const sums = { completed: 0, calls: 0, again: 0, across: 0, heard: 0, inVain: 0 }
  for (let number = 0; number < runs; number += 1) {
    const name = nameOf(number)
    const own = lines.get(name)!
    const state = states.get(name) ?? 'gone'
    if (state === 'completed') sums.completed += 1
    else stuck.push(`${name} ${state}`)
    for (const values of own.calls.values()) {
      sums.calls += values.length
      sums.again += values.length - 1
    }
    const version = own.versions.at(-1)
    if (version === undefined) {
      if (state === 'completed') stuck.push(`${name} completed and never came to its end`)
      continue
    }
    const steps = stepsOf(seed, number, version)
    stuck.push(...steps.filter((step) => !own.got.has(step)).map((step) => `${name}: ${step} is missing`))
    if (own.begun.size > 1) sums.across += 1
    for (const { name: signal, ms } of waitsOf(seed, number)) {
      const data = own.heard.get(signal)
      const taken = [...(own.taken.get(signal) ?? [])]
      if (data === undefined) stuck.push(`${name}: nothing was heard of ${signal}`)
      else if (data === '-') {
        sums.inVain += 1
        if (ms === undefined || taken.length > 0) found.lost.push(`${name}: ${signal} of ${taken}`)
      } else {
        sums.heard += 1
        if (!own.sent.get(signal)?.has(data)) found.lost.push(`${name}: ${signal} says ${data}`)
        if (taken.some((one) => one !== data)) found.lost.push(`${name}: ${signal} of ${taken}, heard ${data}`)
      }
      if (taken.length > 1) found.twice.push(`${name}: ${signal} of ${taken}`)
    }
  }
  return { ...sums, ...found, stuck }
}

function read(
  [what, name, step = '', value = '', answer]: readonly string[],
  lines: ReadonlyMap<string, RunLines>,
  found: { readonly calledAgain: string[]; readonly changed: string[]; readonly twice: string[] },
): void {
  const own = name === undefined ? undefined : lines.get(name)
  if (own === undefined) return
  const add = (to: Map<string, Set<string>>) => to.set(step, (to.get(step) ?? new Set()).add(value))
  if (what === 'calls') {
    if (own.got.has(step)) found.calledAgain.push(`${name}: ${step}`)
    own.calls.set(step, [...(own.calls.get(step) ?? []), value])
  } else if (what === 'gets') {
    const before = own.got.get(step) ?? value
    if (before !== value || !own.calls.get(step)?.includes(value)) found.changed.push(`${name}: ${step}`)
    own.got.set(step, before)
  } else if (what === 'hears') {
    const before = own.heard.get(step) ?? value
    if (before !== value) found.twice.push(`${name}: ${step} says ${before} and ${value}`)
    own.heard.set(step, before)
  } else if (what === 'sends') add(own.sent)
  else if (what === 'sent' && (answer === 'delivered' || answer === 'kept')) add(own.taken)
  else if (what === 'begins') own.begun.add(step)
  else if (what === 'ends') own.versions.push(Number(step) as Version)
}

function stepsOf(seed: number, number: number, version: Version): string[] {
  return planOf(seed, number, version).flatMap((act) =>
    act.kind === 'step' ? [act.name] : act.kind === 'side' ? act.names : [],
  )
}
