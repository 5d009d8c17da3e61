/**
 * Proof: workers on SQS survive everything. They are killed, stopped for longer than their messages are hidden, and
 * given some messages twice. No job is lost. Each repeated run is counted and has a cause, because SQS delivers at
 * least once. On FIFO queues order is kept too.
 */

import { seededRandom } from '../../test/seeded-random.js'
import type { Report, Summary } from '../report.js'
import { type ChaosOutcome, type ChaosPlan, concurrency, drillChaos } from './chaos-drill.js'

export const seed = 20_260_007

const processes = 8
const common = { processes, withinMs: 900_000 }

export async function prove(report: Report): Promise<Summary> {
  const random = seededRandom(seed)
  report.say(`the service: fauxqs 1.9.2 behind a strict door, in a thread; concurrency ${concurrency} on each process`)
  const plain = await drilled(report, 'a standard queue, 1 % of the messages delivered twice', {
    ...{ ...common, kind: 'plain', jobs: 20_000, ids: 0, runMs: 150, kills: 60, stops: 20, copies: 0.01, random },
  })
  report.claim(`copies were delivered (${plain.copied})`, plain.copied >= 100)
  const inHand = 2 * concurrency
  const most = (plain.kills + plain.stops) * inHand + plain.copied
  report.claim(
    `jobs run again are at most ${most}: for each fault what its worker ran and what it was about to delete (${inHand}), and the copies (${plain.again})`,
    plain.again <= most,
  )
  const ordered = await drilled(report, 'an ordered task of 40 ids on a FIFO queue', {
    ...{ ...common, kind: 'ordered', jobs: 6_000, ids: 40, runMs: 50, kills: 30, stops: 10, copies: 0, random },
  })
  const { outlived, others } = ordered.overlaps
  report.claim(
    `no two handlers of one id ran at once, but where a worker was stopped beyond its lease (${outlived}; others ${others.length}) ${others.slice(0, 3).join(' · ')}`.trim(),
    others.length === 0,
  )
  report.claim(
    `the payloads of each id were first done in the order of their sends (${ordered.disorders.length} not) ${ordered.disorders.slice(0, 3).join(' · ')}`.trim(),
    ordered.disorders.length === 0,
  )
  return { plain: figures(plain), ordered: figures(ordered) }
}

async function drilled(report: Report, what: string, plan: ChaosPlan): Promise<ChaosOutcome> {
  report.say(
    `— ${what}: ${plan.jobs} jobs on ${processes} processes, ${plan.kills} × kill -9, ${plan.stops} × SIGSTOP for 9 to 12 s with a lease of 3 s`,
  )
  const outcome = await drillChaos(plan)
  const { lost, again, byCause, failedCalls } = outcome
  report.say(JSON.stringify(figures(outcome)))
  report.claim('every fault happened', outcome.kills === plan.kills && outcome.stops === plan.stops)
  report.claim(`0 jobs lost (${lost})`, lost === 0)
  report.claim(
    `every job that was run again has its cause: ${byCause.killed} killed before the delete, ${byCause.stopped} stopped beyond the lease, ${byCause.copied} delivered twice, ${byCause.unknown} unknown, of ${again}`,
    byCause.unknown === 0,
  )
  report.claim(`nothing lies in the dead-letter queue (${outcome.dead})`, outcome.dead === 0)
  report.claim(`no call failed ${failedCalls.slice(0, 3).join(' · ')}`.trim(), failedCalls.length === 0)
  return outcome
}

function figures({ failedCalls, disorders, overlaps: { outlived, others }, ...outcome }: ChaosOutcome) {
  const counted = { failedCalls: failedCalls.length, disorders: disorders.length }
  return { ...outcome, seconds: Math.round(outcome.seconds), ...counted, overlaps: { outlived, others: others.length } }
}
