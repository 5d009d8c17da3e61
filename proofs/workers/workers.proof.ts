/**
 * Proof: workers survive everything. They are killed, stopped, poisoned, blocked, signalled and deprived of their
 * store. It also measures the cost when nothing happens. Triggers write the audit inside the store's own transactions.
 */

import type { Report, Summary } from '../report.js'
import { herd } from './herd.js'
import { idleClaims } from './idle.js'
import { blocked, cancel, chaos, lasting, latency, poison, stops } from './worker-drills.js'

export const seed = 20_260_003

export async function prove(report: Report): Promise<Summary> {
  return {
    chaos: await chaos(report, seed, { kills: 50, stops: 50 }),
    poison: await poison(report),
    stops: await stops(report),
    blocked: await blocked(report),
    cancelMs: await cancel(report),
    herd: await wakeUps(report),
    latency: await latency(report),
    endurance: await lasting(report),
  }
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
