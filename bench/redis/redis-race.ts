/** The race: contenders take the same measure one after the other, round by round, and are compared within each round. */

import type { BenchReport } from '../bench.js'
import { type ContenderName, promiseNames } from '../contenders/contender.js'
import type { ContenderProcess } from '../contenders/contender-process.js'
import { figure, grouped, roundsOf, roundsText } from '../rounds.js'
import type { RedisField } from './redis-field.js'
import { jobsIn, type Lap, lapOf, lapsText } from './redis-lap.js'
import type { Spent } from './redis-meter.js'

export interface Race {
  readonly title: string
  /**
   * Only this number of first jobs of a process, in a new process for each round: none of its code is compiled. Absent:
   * many rounds in one process.
   */
  readonly freshJobs?: number
  /** The prefix of the names of its ratios. */
  readonly key: string
  run(contender: ContenderProcess, jobs: number): Promise<Spent>
  /** The same measure for the raw limit: `perCall` jobs in each call, `inFlight` calls unanswered at a time. */
  runRaw(contender: ContenderProcess, jobs: number, perCall: number, inFlight: number): Promise<Spent>
}

export interface RaceLength {
  /** How often all processes start anew before `rounds` rounds. 0: the running ones take part. */
  readonly renewals: number
  readonly rounds: number
  /** The approximate time of a round of one contender. */
  readonly roundMs: number
}

/** Jobs of the first round, which shows how many jobs the next one needs. */
const firstJobs = 5_000
/**
 * Rounds that are not counted: the first, and one of full length. After that the code of every contender is compiled.
 */
const warmUps = 2

const turnRaw: Race['runRaw'] = async (contender, jobs, perCall, inFlight) => {
  await contender.take('fill', { jobs })
  return contender.take('work', { jobs, concurrency: perCall, workers: inFlight })
}

const addRaw: Race['runRaw'] = (contender, jobs, perCall, inFlight) =>
  contender.take('enqueueMany', { jobs, perCall, inFlight })

/** The two measures of the raw limit. `add` is compared with both ways to enqueue, `ack+fetch` with processing. */
export const rawRuns = { add: addRaw, 'ack+fetch': turnRaw }

export function processing(key: string, concurrency: number): Race {
  return {
    title: `process, concurrency ${concurrency}`,
    key,
    async run(contender, jobs) {
      await contender.take('fill', { jobs })
      return contender.take('work', { jobs, concurrency })
    },
    runRaw: turnRaw,
  }
}

/** The race of a process that lives for a second or two. */
export function beginning(key: string, concurrency: number, freshJobs: number): Race {
  return {
    ...processing(key, concurrency),
    title: `process, the first ${grouped(freshJobs)} jobs of a process`,
    freshJobs,
  }
}

export function enqueueing(key: string, inFlight: number): Race {
  return {
    title: `enqueue, ${grouped(inFlight)} in flight`,
    key,
    run: (contender, jobs) => contender.take('enqueue', { jobs, inFlight }),
    runRaw: addRaw,
  }
}

export function enqueueingMany(key: string, perCall: number): Race {
  return {
    title: `enqueueMany of ${grouped(perCall)}`,
    key,
    run: (contender, jobs) => contender.take('enqueueMany', { jobs, perCall, inFlight: 1 }),
    runRaw: addRaw,
  }
}

/**
 * Runs the race, prints the outcome, and resolves to its ratios by name. Raw takes as many jobs per call as Millrace
 * did.
 */
export async function race(
  report: BenchReport,
  field: RedisField,
  { title, key, freshJobs, run, runRaw }: Race,
  { renewals, rounds, roundMs }: RaceLength,
): Promise<Record<string, number>> {
  // Only Millrace's laps show how many jobs per call the limit is measured with.
  const names = field.names.filter((name) => name !== 'raw' || field.names.includes('millrace'))
  const laps = new Map<ContenderName, Lap[]>(names.map((name) => [name, []]))
  const isFresh = freshJobs !== undefined
  const [lives, uncounted, counted] = isFresh ? [rounds, 0, 1] : [Math.max(1, renewals), warmUps, rounds]
  for (let renewal = 0; renewal < lives; renewal += 1) {
    if (isFresh || renewals > 0) await field.renew()
    const last = new Map<ContenderName, Lap>()
    for (let round = 0; round < uncounted + counted; round += 1) {
      // The first to run may find the machine in another state than the last.
      for (const name of (renewal + round) % 2 === 0 ? names : names.toReversed()) {
        const runner = field.contenders.get(name)!
        const before = last.get(name)
        const jobs = freshJobs ?? (before === undefined ? firstJobs : jobsIn(roundMs, before))
        const perCall = Math.max(1, Math.round(last.get('millrace')?.perCall ?? 1))
        const lap = lapOf(await (name === 'raw' ? runRaw(runner, jobs, perCall, 1) : run(runner, jobs)), jobs)
        last.set(name, lap)
        if (round >= uncounted) laps.get(name)!.push(lap)
      }
    }
  }
  report.say(`\n${title}`)
  for (const [name, all] of laps) report.say(`  ${name.padEnd(10)} ${lapsText(all)}`)
  return ratiosOf(report, laps, key)
}

const speed = (lap: Lap) => lap.perSecond

const comparisons: readonly {
  ending: string
  own?: ContenderName
  rival: ContenderName
  of: (lap: Lap) => number
  text: string
}[] = [
  { ending: '', rival: 'bullmq', of: (lap) => lap.perSecond, text: '× BullMQ' },
  { ending: 'OfBaseline', rival: 'baseline', of: (lap) => lap.perSecond, text: 'of the baseline' },
  { ending: 'WithHistory', rival: 'unwatched', of: (lap) => lap.perSecond, text: 'of one without history' },
  {
    ending: 'Watched',
    own: 'watched',
    rival: 'unwatched',
    of: (lap) => lap.perSecond,
    text: 'of one without history, if metrics are scraped and a page is open',
  },
  { ending: 'OfBeeQueue', rival: 'bee-queue', of: (lap) => lap.perSecond, text: '× bee-queue' },
  { ending: 'OfPrototype', rival: 'prototype', of: (lap) => lap.perSecond, text: 'of the prototype' },
  ...promiseNames.flatMap((one) => [
    { ending: `Of prototype ${one}`, rival: one, of: speed, text: `of the prototype ${one}` },
    { ending: ` ${one}`, own: one, rival: 'prototype' as const, of: speed, text: `of the prototype by the one ${one}` },
  ]),
  { ending: 'OfRawLimit', rival: 'raw', of: (lap) => lap.perSecond, text: 'of the raw limit' },
  { ending: 'RedisCpu', rival: 'bullmq', of: (lap) => lap.redisCpuUs, text: 'of the CPU that BullMQ takes in Redis' },
  { ending: 'NodeCpu', rival: 'bullmq', of: (lap) => lap.nodeCpuUs, text: 'of the CPU that BullMQ takes in Node' },
]

function ratiosOf(report: BenchReport, laps: ReadonlyMap<ContenderName, Lap[]>, key: string): Record<string, number> {
  const ratios: Record<string, number> = {}
  for (const { ending, own: name = 'millrace', rival, of, text } of comparisons) {
    const [own, theirs] = [laps.get(name), laps.get(rival)]
    if (own === undefined || theirs === undefined) continue
    const rounds = roundsOf(own.map((lap, round) => of(lap) / of(theirs[round]!)))
    report.say(`  ${roundsText(rounds, 2)} ${text}`)
    ratios[`${key}${ending}`] = figure(rounds.median)
  }
  return ratios
}
