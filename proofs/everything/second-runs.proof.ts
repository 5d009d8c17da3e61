/**
 * Proof of the second runs: for 15 minutes on each store (`SECOND_RUNS_MINUTES`) jobs of every kind run while workers are
 * killed, stopped for longer than their leases and relieved, producers and processes of jobs are killed, and the store is
 * taken away or locked. A table says of every run of a job that had run before why it was made, and of every tick that
 * was left out by which rule, and who was told.
 */

import { join } from 'node:path'
import { forkedProgram, outcomeOf } from '../forked-program.js'
import type { Report, Summary } from '../report.js'
import { claimSound } from './chaos-judge.js'
import type { SecondRunsOutcome } from './second-runs-drill.js'
import { type SecondRun, unknownCause } from './second-runs-judge.js'
import type { SecondRunsOrder } from './second-runs-run.js'

export const seed = 20_261_129

const minutes = Number(process.env.SECOND_RUNS_MINUTES ?? 15)
const stores = (process.env.SECOND_RUNS_STORES ?? 'SQLite,Redis').split(',') as SecondRunsOrder['store'][]

export async function prove(report: Report): Promise<Summary> {
  report.say(`${minutes} minutes on each store, one beside the other: the machine is overloaded`)
  const outcomes = await Promise.all(stores.map((store) => run({ store, seed, minutes })))
  const summary: Record<string, unknown> = {}
  for (const [i, store] of stores.entries()) summary[store] = judged(report, store, outcomes[i]!)
  return summary
}

const run = (order: SecondRunsOrder): Promise<SecondRunsOutcome> =>
  outcomeOf(forkedProgram(join(import.meta.dirname, 'second-runs-run.ts'), [JSON.stringify(order)]))

function judged(report: Report, name: string, outcome: SecondRunsOutcome): Summary {
  const { accepted, runs, byKind, deeds, second, ticks, left } = outcome
  const { settleMs, unsettled, deaths, refusedSettles, failedCalls, twiceTicked, seconds } = outcome
  report.say('')
  report.say(`${name}, ${seconds.toFixed(0)} s: ${counts(deeds)}`)
  report.say(`  jobs done: ${counts(byKind)}; ${runs} runs; ${refusedSettles} settles of lost claims were refused`)
  for (const [call, number] of sorted(failedCalls).slice(0, 6)) report.say(`  ${number} x ${call}`)
  report.say(
    `  the store had taken a completion after ${settleMs.median.toFixed(1)} ms (95 %: ${settleMs.p95.toFixed(0)}, 99 %: ${settleMs.p99.toFixed(0)})`,
  )
  report.say(
    `  a killed worker had ended ${unsettled.mean.toFixed(1)} runs whose completion it was not told yet, at most ${unsettled.most}`,
  )
  report.say(
    `  second runs: ${second.length}, of which ${second.filter(({ isDone }) => isDone).length} of jobs whose run before had ended`,
  )
  const byCause = new Map<string, SecondRun[]>()
  for (const one of second) byCause.set(one.cause, [...(byCause.get(one.cause) ?? []), one])
  for (const [cause, some] of [...byCause].sort(([, a], [, b]) => b.length - a.length)) {
    const kinds: Record<string, number> = {}
    for (const { kind } of some) kinds[kind] = (kinds[kind] ?? 0) + 1
    report.say(
      `    ${some.length} · ${cause} · ended before: ${some.filter(({ isDone }) => isDone).length} · ${counts(kinds)}`,
    )
  }
  report.say('  schedule · ticks due · enqueued · left out, by rule')
  for (const { schedule, due, enqueued, causes } of ticks)
    report.say(
      `    ${schedule} · ${due} · ${enqueued} · ${causes.map(([cause, count]) => `${count} ${cause}`).join('; ') || 'none'}`,
    )
  const claimNone = claimSound(report, name, outcome, deaths)
  claimNone(
    'second runs are of unknown cause',
    second.flatMap(({ unknown }) => unknown ?? []),
  )
  const unknown = ticks.reduce((sum, row) => sum + row.unknown, 0)
  report.claim(`${name}: ${unknown} ticks that were left out are of unknown cause`, unknown === 0)
  report.claim(`${name}: no instant ticked twice`, twiceTicked === 0)
  report.claim(`${name}: nothing waits or is dead at the end`, left.waiting === 0 && left.dead === 0)
  return {
    ...{ accepted, runs, deeds, settleMs, unsettled, seconds: Math.round(seconds), second: second.length },
    byCause: Object.fromEntries([...byCause].map(([cause, some]) => [cause, some.length])),
    unknown: byCause.get(unknownCause)?.length ?? 0,
    ticks: ticks.map(({ schedule, due, enqueued, causes }) => ({ schedule, due, enqueued, causes })),
  }
}

const sorted = (numbers: Readonly<Record<string, number>>) => Object.entries(numbers).sort(([, a], [, b]) => b - a)
const counts = (numbers: Readonly<Record<string, number>>) =>
  sorted(numbers)
    .map(([what, number]) => `${number} ${what}`)
    .join(', ')
