/**
 * Proof: on SQS the reduced lottery gives queues of weights 100, 40 and 5 their shares of the calls that workers make.
 * Empty queues cost nothing but their polls. A real worker on the real store makes the draws. On queues in this process
 * that always have a job, there are enough draws to measure a share of 3 % within ±2 % of itself. On the emulator there
 * are as many as in Kale's own scene.
 */

import { seededRandom } from '../../test/seeded-random.js'
import { strictSqs } from '../../test/stores/sqs/strict-sqs.js'
import type { Report, Summary } from '../report.js'
import {
  drawsOfFull,
  drawsOfService,
  idleMinute,
  onlyLow,
  type QueueName,
  queueNames,
  weights,
} from './lottery-scenes.js'

export const seed = 20_260_008

const draws = 1_000_000
const early = 100_000
const kaleDraws = 14_500
const tolerance = 0.02
const busyMs = 30_000

type Drawn = Readonly<Record<QueueName, number>>

const tickets = queueNames.reduce((sum, name) => sum + weights[name], 0)
const total = (drawn: Drawn) => queueNames.reduce((sum, name) => sum + drawn[name], 0)
const expected = (name: QueueName) => weights[name] / tickets

export async function prove(report: Report): Promise<Summary> {
  const unseeded = Math.random
  // The workers draw from it.
  Math.random = seededRandom(seed)
  const sqs = [await strictSqs(), await strictSqs(), await strictSqs()] as const
  try {
    const full = await drawsOfFull(draws, early)
    report.say(`— full queues, ${draws.toLocaleString('en')} draws by one worker in ${full.seconds.toFixed(0)} s`)
    told(report, full.early)
    told(report, full.all)
    report.claim(
      `after ${early.toLocaleString('en')} draws each share is within three standard deviations of its weight's, and those of 100 and 40 within ±2 % of it`,
      isWithinDeviations(full.early, 3) && Math.max(off(full.early, 'high'), off(full.early, 'default')) <= tolerance,
    )
    report.claim(
      `after ${draws.toLocaleString('en')} each is within ±2 % of it`,
      queueNames.every((name) => off(full.all, name) <= tolerance),
    )

    const served = await drawsOfService(sqs[0].endpoint, kaleDraws)
    report.say(`— on the emulator, ${kaleDraws.toLocaleString('en')} draws`)
    told(report, served)
    report.claim('each share is within three standard deviations', isWithinDeviations(served, 3))

    const [busy, idle] = await Promise.all([onlyLow(sqs[1].endpoint, busyMs), idleMinute(sqs[2].endpoint)])
    // After 1, 2 and 4 s, then every 5 s; and once before the queue is known to be empty.
    const most = 4 + Math.ceil(busyMs / 5_000)
    report.say(`— jobs in the queue of weight 5 alone, for ${busyMs / 1_000} s: ${JSON.stringify(busy)}`)
    report.claim(
      `the empty ones are asked at most ${most} times each (${busy.high} and ${busy.default}), whatever the jobs of the other`,
      busy.high <= most && busy.default <= most && busy.ran > 1_000,
    )
    report.say(`— three empty queues, the second minute: ${idle} calls`)
    report.claim('an idle worker makes at most 4 calls a minute', idle <= 4)
    return { early: full.early, all: full.all, served, busy, idle }
  } finally {
    Math.random = unseeded
    for (const one of sqs) await one.close()
  }
}

/** The relative difference between the share and its expected value. */
function off(drawn: Drawn, name: QueueName): number {
  return Math.abs(drawn[name] / total(drawn) / expected(name) - 1)
}

function isWithinDeviations(drawn: Drawn, most: number): boolean {
  const all = total(drawn)
  return queueNames.every((name) => {
    const share = expected(name)
    return Math.abs(drawn[name] - all * share) <= most * Math.sqrt(all * share * (1 - share))
  })
}

function told(report: Report, drawn: Drawn): void {
  const shares = queueNames.map((name) => {
    const share = (100 * drawn[name]) / total(drawn)
    return `${name} ${share.toFixed(3)} % (expected ${(100 * expected(name)).toFixed(3)} %, off by ${(100 * off(drawn, name)).toFixed(2)} % of it)`
  })
  report.say(`${total(drawn).toLocaleString('en')}: ${shares.join(', ')}`)
}
