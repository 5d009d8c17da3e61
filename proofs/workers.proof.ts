/**
 * Workers that survive everything: killed, stopped, poisoned, blocked, signalled, deprived of their store — and what it
 * costs when nothing happens. The audit is written by triggers inside the store's own transactions.
 */

import { seededRandom } from '../test/seeded-random.js'
import { contend, leaseMs } from './contention.js'
import { endurance, slope } from './endurance.js'
import * as hazards from './hazards.js'
import { herd } from './herd.js'
import { idleClaims } from './idle.js'
import type { Report, Summary } from './report.js'
import { startLatency } from './start-latency.js'

export const seed = 20_260_003

const returnBoundMs = leaseMs + 5_000

export async function prove(report: Report): Promise<Summary> {
  return {
    chaos: await chaos(report),
    poison: await poison(report),
    stops: await stops(report),
    blocked: await blocked(report),
    cancelMs: await cancel(report),
    herd: await wakeUps(report),
    latency: await latency(report),
    endurance: await lasting(report),
  }
}

async function chaos(report: Report) {
  report.say('— 50 × kill -9 and 50 × SIGSTOP longer than the lease, during 20,000 jobs on 8 processes')
  const {
    shares: _,
    longestWaitMs: __,
    ...outcome
  } = await contend({
    jobs: 20_000,
    processes: 8,
    jobMs: 150,
    kills: 50,
    stops: 50,
    random: seededRandom(seed),
    withinMs: 900_000,
  })
  report.say(JSON.stringify(outcome))
  report.claim('every fault happened', outcome.kills === 50 && outcome.stops === 50)
  report.claim('0 jobs lost, 0 completed twice', outcome.lost === 0 && outcome.completedTwice === 0)
  report.claim(
    'no claim began before the one before had ended, and no end had a fence that was not current',
    outcome.overlaps === 0,
  )
  report.claim(`settles of lost claims were made and refused (${outcome.refused})`, outcome.refused > 0)
  report.claim(
    `what was in hand was back within lease + 5 s (slowest ${outcome.slowestReturnMs} ms)`,
    outcome.slowestReturnMs > 0 && outcome.slowestReturnMs <= returnBoundMs,
  )
  report.claim('nothing was buried as crashed', outcome.buried === 0)
  return outcome
}

async function poison(report: Report) {
  const outcomes: Record<string, unknown> = {}
  for (const kind of ['abort', 'segfault', 'memory', 'exit'] as const) {
    report.say(`— a job that kills its process (${kind}), concurrency 100, one innocent job every 10 ms`)
    const outcome = await hazards.poisonAmong({ kind, innocents: 500, everyMs: 10, processes: 2, concurrency: 100 })
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
  const batch = await hazards.poisonInBatch()
  report.say(JSON.stringify(batch))
  report.claim('nine complete once', batch.completed === 9 && batch.completedTwice === 0 && batch.buried === 0)
  return { ...outcomes, batch }
}

async function stops(report: Report) {
  report.say('— stops')
  const batch = await hazards.termDuringBatch()
  report.say(`SIGTERM during a batch: ${JSON.stringify(batch)}`)
  report.claim(
    'what was not begun is put back at once, and runs elsewhere at once',
    batch.putBack === 5 && batch.putBackMs < 1_000 && batch.elsewhereMs < 2_000,
  )
  report.claim('no attempt is counted, each job runs once', batch.failed === 0 && batch.runs === batch.jobs)
  report.claim('it exits with 0 within grace + 1 s', batch.code === 0 && batch.stopMs < 11_000)
  const [patient, deaf] = [await hazards.graceExceeded('patient'), await hazards.graceExceeded('deaf')]
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
  const second = await hazards.secondSignal()
  report.say(`second signal: ${JSON.stringify(second)}`)
  report.claim('a second signal ends it at once, with 143', second.code === 143 && second.stopMs < 1_000)
  const idle = await hazards.stopWithoutStore(false)
  const busy = await hazards.stopWithoutStore(true)
  for (const [what, outcome] of Object.entries({ idle, busy })) {
    report.say(`another process holds the write lock, ${what}: ${JSON.stringify(outcome)}`)
    report.claim(
      'it still exits, within grace + 1 s (and what the supervisor adds)',
      outcome.code !== null && outcome.stopMs < 3_500,
    )
  }
  return { batch, patient, deaf, second, idle, busy }
}

async function blocked(report: Report) {
  report.say('— handlers that block, or never end')
  const through = await hazards.spinThroughLease('5s', 20_000)
  report.say(`spins 20 s with a lease of 5 s: ${JSON.stringify(through)}`)
  report.claim('it runs once', through.runs === 1 && through.claims === 1 && through.processesLost === 0)
  const past = await hazards.spinPastMaxBlock()
  report.say(`spins past a maxBlock of 2 s: ${JSON.stringify(past)}`)
  report.claim(
    'it is run again in another process, and its own is recycled',
    past.runs === 2 && past.processes === 2 && past.recycled === 1,
  )
  const never = await hazards.neverResolves()
  report.say(`never resolves: ${JSON.stringify(never)}`)
  report.claim(
    'it times out, its slot is retired and its process replaced',
    never.state === 'dead' && never.isTimeLimit && never.runs === 1,
  )
  return { through, past, never }
}

async function cancel(report: Report) {
  const lease = 6_000
  const latencies = await hazards.cancelLatency(lease, 20)
  const worst = Math.round(latencies.at(-1)!)
  report.say(
    `— cancelling a running job from another process, 20 times, lease ${lease} ms: ${Math.round(latencies[0]!)} … ${worst} ms`,
  )
  // Half a second: how often the lease keeper looks what is due.
  report.claim('it reaches the handler within a third of the lease', worst <= lease / 3 + 500)
  return { best: Math.round(latencies[0]!), worst }
}

async function wakeUps(report: Report) {
  const { connections, claims, claimsInAll, wakeMs, idleCpuMs, rssMb } = await herd({
    processes: 5,
    handlesEach: 40,
    rounds: 20,
  })
  const most = Math.max(...claims)
  const wake = wakeMs.toSorted((a, b) => a - b)
  report.say(
    `— ${connections} idle connections on one file, one job, 20 times: at most ${most} claims before its settle, ${Math.max(...claimsInAll)} in all`,
  )
  report.say(
    `its claim was answered after ${wake[0]!.toFixed(1)} … ${wake.at(-1)!.toFixed(1)} ms; each connection uses ${idleCpuMs.toFixed(2)} ms of CPU a second; ${rssMb.toFixed(0)} MB for 40 of them`,
  )
  report.claim('one job wakes at most 10 of them', most <= 10)
  const idle = await idleClaims('reduced-lottery', 20_000)
  report.say(`an idle worker uses ${(idle.cpuMs / 200).toFixed(2)} % of a core, ${idle.claims} claims in 20 s`)
  return { most, idle }
}

async function latency(report: Report) {
  const calm = await startLatency({ jobs: 1_000, everyMs: 10, busy: false })
  const busy = await startLatency({ jobs: 1_000, everyMs: 10, busy: true })
  report.say(
    `— start latency at 100 jobs/s: p50 ${calm.p50}, p99 ${calm.p99} ms; with every core busy p50 ${busy.p50}, p99 ${busy.p99} ms`,
  )
  return { calm, busy }
}

async function lasting(report: Report) {
  const samples = await endurance({ jobs: 200_000, samples: 10 })
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
