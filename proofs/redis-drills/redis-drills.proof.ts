/**
 * Proof of Redis drills: Redis fails in every way it can, under users with running producers and workers. It is killed,
 * failed over, full, demoted, loading, forgetful, busy, unable to save, silent, unreachable or meddled with, all on
 * real servers.
 */

import { startRedis } from 'millrace/store-testing'
import type { Report, Summary } from '../report.js'
import { foreignKey, movedSlot, thrownAway } from './foreign-hands.js'
import { idleCrowd } from './idle-crowd.js'
import { halfOpen, noServer, repliesLost } from './lost-links.js'
import * as refusals from './refusals.js'
import { failover, killedServer } from './server-deaths.js'
import type { Verdict } from './traffic.js'

/** Nothing is drawn at random: servers and clocks decide when things happen. */
export const seed = 0

const resumeBoundMs = 5_000

export async function prove(report: Report): Promise<Summary> {
  report.say(`server: ${await serverVersion()}`)
  return {
    kills: await kills(report),
    failovers: await failovers(report),
    full: await full(report),
    refused: await refused(report),
    unblocked: await unblocked(report),
    links: await links(report),
    foreign: await foreign(report),
    crowds: await crowds(report),
  }
}

async function serverVersion(): Promise<string> {
  const server = await startRedis()
  try {
    const info = String(await server.ask('INFO', 'server'))
    return /(?:redis|valkey)_version:\S+/.exec(info)![0]
  } finally {
    await server.stop()
  }
}

/** The promises that hold whatever happens, as long as the server keeps the writes that it acknowledged. */
function nothingLost(report: Report, verdict: Verdict): void {
  const { acknowledged, lost, completedTwice, refusedOddly, buried, workersFailed } = verdict
  report.claim(`0 of ${acknowledged} acknowledged jobs lost, 0 completed twice`, lost === 0 && completedTwice === 0)
  report.claim('no worker ended, nothing was buried', workersFailed === 0 && buried === 0)
  report.claim(`refused were ${verdict.refused}, all as unavailable`, refusedOddly === 0)
}

async function kills(report: Report) {
  const outcome = await killedServer({ appendfsync: 'everysec', kills: 8, betweenMs: 2_000 })
  report.say(`— 8 × kill -9 of the server, AOF everysec, a second away each time: ${JSON.stringify(outcome)}`)
  nothingLost(report, outcome)
  const slowest = Math.max(...outcome.resumedMs, ...outcome.acceptedMs)
  report.claim(`workers and producers go on within 5 s (slowest ${slowest} ms)`, slowest <= resumeBoundMs)
  return outcome
}

async function failovers(report: Report) {
  const bare = await failover({ replicas: 0, lagMs: 500 })
  report.say(`— failover, the replica 500 ms behind, 'replicas: 0': ${JSON.stringify(bare)}`)
  report.say(
    `without 'replicas' ${bare.lost} acknowledged jobs were lost, ${bare.completedTwice} completed twice: allowed`,
  )
  report.claim('no worker ended', bare.workersFailed === 0)
  const safe = await failover({ replicas: 1, lagMs: 500 })
  report.say(`— the same with 'replicas: 1': ${JSON.stringify(safe)}`)
  report.claim(`0 of ${safe.acknowledged} acknowledged jobs lost`, safe.lost === 0)
  for (const { electedMs, resumedMs } of [bare, safe])
    report.claim(
      `workers go on ${resumedMs} ms after the death, within 5 s after the Sentinels agree (${electedMs} ms)`,
      resumedMs <= electedMs + resumeBoundMs,
    )
  return { bare, safe }
}

async function full(report: Report) {
  const outcome = await refusals.full({ maxmemory: '5mb' })
  report.say(`— maxmemory reached: ${JSON.stringify(outcome)}`)
  report.claim(
    `enqueue throws StoreFullError at once (${outcome.refusedMs} ms)`,
    outcome.isFull && outcome.refusedMs < 500,
  )
  report.claim(
    'beats, retries, releases, burials, revivals and cancels work meanwhile',
    outcome.cancelled && outcome.settles.every((said) => ['ok', 'revived 1', 'running 0'].includes(said)),
  )
  report.claim(
    `a worker that is started then works off all ${outcome.acknowledged}, and meets no error`,
    outcome.lost === 0 && outcome.completedTwice === 0 && outcome.workersFailed === 0 && outcome.storeFailed === 0,
  )
  report.claim('enqueue works again afterwards', outcome.acceptedLater)
  return outcome
}

async function refused(report: Report) {
  const outcomes = {
    READONLY: await refusals.demoted({ forMs: 6_000 }),
    LOADING: await refusals.loading({ ballast: 300 }),
    NOSCRIPT: await refusals.forgotten({ forMs: 5_000, everyMs: 50 }),
    BUSY: await refusals.busy({ forMs: 6_000 }),
    MISCONF: await refusals.unsaved({ forMs: 4_000 }),
  }
  for (const [word, outcome] of Object.entries(outcomes)) {
    report.say(`— ${word}: ${JSON.stringify(outcome)}`)
    nothingLost(report, outcome)
    report.claim(`workers go on within 5 s (${outcome.resumedMs} ms)`, outcome.resumedMs <= resumeBoundMs)
  }
  const { NOSCRIPT } = outcomes
  report.claim(
    'a server that forgets its scripts disturbs nobody',
    NOSCRIPT.refused === 0 && NOSCRIPT.storeFailed === 0,
  )
  return outcomes
}

async function unblocked(report: Report) {
  const outcome = await refusals.unblocked()
  report.say(`— UNBLOCKED, by an operator and by a demotion: ${JSON.stringify(outcome)}`)
  nothingLost(report, outcome)
  report.claim('workers that rest hear of the next job all the same', Math.max(...outcome.startedMs) <= resumeBoundMs)
  return outcome
}

async function links(report: Report) {
  const silent = await halfOpen({ forMs: 10_000 })
  report.say(`— half-open connections: ${JSON.stringify(silent)}`)
  nothingLost(report, silent)
  report.claim(
    `a call is given up, in doubt, within 5 s (${silent.call.ms} ms)`,
    silent.call.isUnavailable && silent.call.ms <= 5_500,
  )
  report.claim(
    `a blocking read of 500 ms is given up within 2 s more (${silent.pop.ms} ms)`,
    silent.pop.isUnavailable && silent.pop.ms <= 3_000,
  )
  report.claim(`workers go on within 5 s (${silent.resumedMs} ms)`, silent.resumedMs <= resumeBoundMs)
  const lost = await repliesLost({ rounds: 20 })
  report.say(`— answers lost 20 times: ${JSON.stringify(lost)}`)
  nothingLost(report, lost)
  report.claim(
    'every enqueue counts once, every job runs once',
    lost.countedTwice === 0 && lost.runTwice === 0 && lost.processed === lost.acknowledged,
  )
  const none = await noServer({ forMs: 6_000 })
  report.say(`— no server: ${JSON.stringify(none)}`)
  report.claim(
    `enqueue rejects with StoreUnavailableError within 5 s (${none.slowestMs} ms; ${none.neverHadServerMs} ms where there never was one)`,
    none.isUnavailable && none.slowestMs <= 5_000 && none.neverHadServerMs <= 5_000,
  )
  report.claim(
    `a worker started meanwhile begins when it is there (${none.workerMs} ms)`,
    none.workerMs <= resumeBoundMs,
  )
  return { silent, lost, none }
}

async function foreign(report: Report) {
  const key = await foreignKey()
  report.say(`— a key of another type: ${JSON.stringify(key)}`)
  report.claim(
    'StoreCorruptError names the queue and the key',
    key.enqueueIsCorrupt && key.workerIsCorrupt && key.isNamed,
  )
  report.claim(
    'a worker of that queue alone ends, one that serves others too goes on, nothing is repaired',
    key.workersFailed === 1 && key.isUntouched,
  )
  const away = await thrownAway({ times: 10 })
  report.say(`— FLUSHALL, 10 times: ${JSON.stringify(away)}`)
  report.claim(
    `queues are made anew, settles answer 'gone' (${away.gone}), no call fails`,
    away.gone > 0 && away.refused === 0 && away.storeFailed === 0 && away.workersFailed === 0,
  )
  const moved = await movedSlot({ moves: 6, stepMs: 50 })
  report.say(`— a slot that moves, 6 times: ${JSON.stringify(moved)}`)
  nothingLost(report, moved)
  report.claim('workers go on within 5 s', Math.max(...moved.resumedMs) <= resumeBoundMs)
  return { key, away, moved }
}

async function crowds(report: Report) {
  const plan = { processes: 5, handlesEach: 100, rounds: 10 }
  const single = await idleCrowd({ mode: 'single', ...plan })
  const cluster = await idleCrowd({ mode: 'cluster', ...plan })
  for (const [where, outcome] of Object.entries({ 'one server': single, 'a cluster': cluster })) {
    const { handles, sent, caused, commands, last, settledMs } = outcome
    report.say(
      `— ${handles} stores rest on ${where}, one job, 10 times, from its enqueue to its settle: ${sent.join(' ')} commands sent, ${caused.join(' ')} without the blocking reads and subscriptions that are made anew every few seconds; ${commands.join(' ')} with what scripts call`,
    )
    report.say(`the last: ${last.join(' ')}; settled after ${settledMs.join(' ')} ms`)
  }
  report.claim('on one server at most 20 are sent for it', Math.max(...single.caused) <= 20)
  return {
    single: { sent: single.sent, commands: single.commands },
    cluster: { sent: cluster.sent, commands: cluster.commands },
  }
}
