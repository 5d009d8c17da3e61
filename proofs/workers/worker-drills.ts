/** The worker drills: hazards of workers, described and judged on any ground. */

import { seededRandom } from '../../test/seeded-random.js'
import { leaseMs } from '../crew.js'
import type { OpenGround } from '../ground.js'
import type { Report } from '../report.js'
import { contend } from './contention.js'
import { endurance, slope } from './endurance.js'
import * as hazards from './hazards.js'
import { startLatency } from './start-latency.js'

export interface Faults {
  readonly kills: number
  readonly stops: number
  readonly crashes?: number
}

/** The message of every store that was away. */
const saysAway = /Nothing was changed|in doubt/

/** 20,000 jobs on 8 processes, under these faults. */
export async function chaos(report: Report, seed: number, faults: Faults, open?: OpenGround) {
  const { kills, stops, crashes = 0 } = faults
  // The promise allows one more lease if the store itself was away.
  const [within, boundMs] = crashes === 0 ? ['lease', leaseMs + 5_000] : ['two leases', 2 * leaseMs + 5_000]
  const ofStore = crashes === 0 ? '' : `, ${crashes} × kill -9 of the store`
  report.say(
    `— ${kills} × kill -9 and ${stops} × SIGSTOP longer than the lease${ofStore}, during 20,000 jobs on 8 processes`,
  )
  const {
    shares: _,
    longestWaitMs: __,
    failedCalls,
    ...seen
  } = await contend(
    { jobs: 20_000, processes: 8, jobMs: 150, ...faults, random: seededRandom(seed), withinMs: 900_000 },
    open,
  )
  const unexpected = failedCalls.filter((call) => crashes === 0 || !saysAway.test(call))
  const outcome = { ...seen, failedCalls: failedCalls.length }
  report.say(JSON.stringify(outcome))
  report.claim(
    'every fault happened',
    outcome.kills === kills && outcome.stops === stops && outcome.crashes === crashes,
  )
  report.claim('0 jobs lost, 0 completed twice', outcome.lost === 0 && outcome.completedTwice === 0)
  report.claim(
    'no claim began before the one before had ended, and no end had a fence that was not current',
    outcome.overlaps === 0 && outcome.breaches.length === 0,
  )
  report.claim(`settles of lost claims were made and refused (${outcome.refused})`, outcome.refused > 0)
  report.claim(
    `what was in hand was back within ${within} + 5 s (slowest ${outcome.slowestReturnMs} ms)`,
    outcome.slowestReturnMs > 0 && outcome.slowestReturnMs <= boundMs,
  )
  report.claim('nothing was buried as crashed', outcome.buried === 0)
  report.claim(
    `calls failed only while the store was away ${unexpected.slice(0, 3).join(' · ')}`.trim(),
    unexpected.length === 0,
  )
  return outcome
}

export async function poison(report: Report, open?: OpenGround) {
  const outcomes: Record<string, unknown> = {}
  for (const kind of ['abort', 'segfault', 'memory', 'exit'] as const) {
    report.say(`— a job that kills its process (${kind}), concurrency 100, one innocent job every 10 ms`)
    const plan = { kind, innocents: 500, everyMs: 10, processes: 2, concurrency: 100 }
    const outcome = await hazards.poisonAmong(plan, open)
    outcomes[kind] = outcome
    report.say(JSON.stringify(outcome))
    const { culprit } = outcome
    report.claim(
      'it is buried as crashed after maxCrashes (3)',
      culprit?.state === 'dead' && culprit.reason === 'crashed' && culprit.crashes === 3,
    )
    report.claim('nobody else is charged', outcome.othersCharged === 0 && outcome.buried === 0)
    report.claim('every other job completes once', outcome.completed === 500 && outcome.completedTwice === 0)
  }
  report.say('— a batch of ten with one such job')
  const batch = await hazards.poisonInBatch(open)
  report.say(JSON.stringify(batch))
  report.claim('nine complete once', batch.completed === 9 && batch.completedTwice === 0 && batch.buried === 0)
  return { ...outcomes, batch }
}

export async function stops(report: Report, open?: OpenGround) {
  report.say('— stops')
  const batch = await hazards.termDuringBatch(open)
  report.say(`SIGTERM during a batch: ${JSON.stringify(batch)}`)
  report.claim(
    'what was not begun is put back at once, and runs elsewhere at once',
    batch.putBack === 5 && batch.putBackMs < 1_000 && batch.elsewhereMs < 2_000,
  )
  report.claim('no attempt is counted, each job runs once', batch.failed === 0 && batch.runs === batch.jobs)
  report.claim('it exits with 0 within grace + 1 s', batch.code === 0 && batch.stopMs < 11_000)
  const [patient, deaf] = [await hazards.graceExceeded('patient', open), await hazards.graceExceeded('deaf', open)]
  for (const [what, outcome] of Object.entries({ patient, deaf })) {
    report.say(`grace of 1 s exceeded, ${what} handler: ${JSON.stringify(outcome)}`)
    report.claim(
      'its job is released uncounted, and it exits with 0 within grace + 1 s',
      outcome.code === 0 &&
        outcome.stopMs < 2_000 &&
        outcome.job.state === 'ready' &&
        outcome.job.attempt === 1 &&
        outcome.job.crashes === 0,
    )
  }
  const second = await hazards.secondSignal(open)
  report.say(`second signal: ${JSON.stringify(second)}`)
  report.claim('a second signal ends it at once, with 143', second.code === 143 && second.stopMs < 1_000)
  const idle = await hazards.stopWithoutStore(false, open)
  const busy = await hazards.stopWithoutStore(true, open)
  for (const [what, outcome] of Object.entries({ idle, busy })) {
    report.say(`the store does not answer, ${what}: ${JSON.stringify(outcome)}`)
    report.claim(
      'it still exits, within grace + 1 s (and what the supervisor adds)',
      outcome.code !== null && outcome.stopMs < 3_500,
    )
  }
  return { batch, patient, deaf, second, idle, busy }
}

export async function blocked(report: Report, open?: OpenGround) {
  report.say('— handlers that block, or never end')
  const through = await hazards.spinThroughLease('5s', 20_000, open)
  report.say(`spins 20 s with a lease of 5 s: ${JSON.stringify(through)}`)
  report.claim('it runs once', through.runs === 1 && through.claims === 1 && through.processesLost === 0)
  const past = await hazards.spinPastMaxBlock(open)
  report.say(`spins past a maxBlock of 2 s: ${JSON.stringify(past)}`)
  report.claim(
    'it is run again in another process, and its own is recycled',
    past.runs === 2 && past.processes === 2 && past.recycled === 1,
  )
  const never = await hazards.neverResolves(open)
  report.say(`never resolves: ${JSON.stringify(never)}`)
  report.claim(
    'it times out, its slot is retired and its process replaced',
    never.state === 'dead' && never.isTimeLimit && never.runs === 1,
  )
  return { through, past, never }
}

export async function cancel(report: Report, open?: OpenGround) {
  const lease = 6_000
  const latencies = await hazards.cancelLatency(lease, 20, open)
  const worst = Math.round(latencies.at(-1)!)
  report.say(
    `— cancelling a running job from another process, 20 times, lease ${lease} ms: ${Math.round(latencies[0]!)} … ${worst} ms`,
  )
  // Half a second: how often the lease keeper looks for anything due.
  report.claim('it reaches the handler within a third of the lease', worst <= lease / 3 + 500)
  return { best: Math.round(latencies[0]!), worst }
}

export async function latency(report: Report, store?: string) {
  const calm = await startLatency({ jobs: 1_000, everyMs: 10, busy: false }, store)
  const busy = await startLatency({ jobs: 1_000, everyMs: 10, busy: true }, store)
  report.say(
    `— start latency at 100 jobs/s: p50 ${calm.p50}, p99 ${calm.p99} ms; with every core busy p50 ${busy.p50}, p99 ${busy.p99} ms`,
  )
  return { calm, busy }
}

export async function lasting(report: Report, store?: string) {
  const samples = await endurance({ jobs: 200_000, samples: 10 }, store)
  const slopes = {
    heapMb: slope(samples, 'heapMb'),
    rssMb: slope(samples, 'rssMb'),
    descriptors: slope(samples, 'descriptors'),
  }
  report.say(`— 200,000 jobs in one process: ${samples.map(({ heapMb }) => heapMb.toFixed(1)).join(' ')} MB of heap`)
  report.say(
    `per 100,000 jobs: ${slopes.heapMb.toFixed(2)} MB of heap, ${slopes.rssMb.toFixed(1)} MB resident, ${slopes.descriptors.toFixed(2)} descriptors`,
  )
  report.claim('heap and descriptors are flat', Math.abs(slopes.heapMb) < 1 && Math.abs(slopes.descriptors) < 1)
  return slopes
}
