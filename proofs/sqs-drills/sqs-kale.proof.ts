/**
 * Proof: Kale's scenes on SQS, once in real time. The retries after 60, 120, 240 and 480 s take fifteen minutes.
 * Meanwhile jobs are buried at once and refused, batches run under one visibility, and a worker stops.
 */

import { strictSqs } from '../../test/stores/sqs/strict-sqs.js'
import type { Report, Summary } from '../report.js'
import { batch, failing, stop, tooLarge, tooLong, unrecoverable } from './kale-scenes.js'

export const seed = 0

const waitsS = [60, 120, 240, 480]
/** SQS hides for whole seconds, and a worker polls. */
const slackMs = 3_000

export async function prove(report: Report): Promise<Summary> {
  const sqs = await strictSqs()
  const store = `sqs://eu-central-1?endpoint=${sqs.endpoint}`
  try {
    const [failed, hopeless, large, quick, slow, ended] = await Promise.all([
      failing(store),
      unrecoverable(store),
      tooLarge(store),
      batch(store, 'quick', { visibility: '3s', timeLimit: '2900ms', jobMs: 30 }),
      batch(store, 'slow', { visibility: '30s', timeLimit: '5s', jobMs: 4_000 }),
      stop(store),
    ])
    const refused = tooLong(store)

    report.say(`— a job that always fails: begun again after ${failed.gapsMs.map(seconds).join(', ')} s`)
    report.claim(
      `its five attempts are 60, 120, 240 and 480 s apart: never less, and at most ${slackMs / 1_000} s more`,
      failed.gapsMs.length === waitsS.length &&
        failed.gapsMs.every((ms, i) => ms >= waitsS[i]! * 1_000 && ms <= waitsS[i]! * 1_000 + slackMs),
    )
    report.claim(
      `then it lies in the dead-letter queue, and nowhere else (${failed.why})`,
      failed.dead === 1 && failed.left === 0 && failed.why === 'max-retries',
    )
    report.say(`— a job that says that nothing helps: ${JSON.stringify(hopeless)}`)
    report.claim(
      'it runs once, and is in the dead-letter queue within a second',
      hopeless.runs === 1 && hopeless.why === 'unrecoverable' && hopeless.ms < 1_000 && hopeless.dead === 1,
    )
    report.say(`— a time limit as long as the visibility: ${refused}`)
    report.claim(
      'it is refused when the mill is made, and both are named',
      /timeLimit.*must be less than the lease of queue 'default' \(1m\)/.test(refused) && /60|1m/.test(refused),
    )
    report.say(`— a payload of 1.1 MB: ${large.said}`)
    report.claim(
      'the producer is told, and nothing is queued',
      large.said.startsWith('payload-too-large') && large.queued === 0,
    )
    report.say(`— ten jobs of 30 ms, limit 2.9 s, under one visibility of 3 s: ${JSON.stringify(quick)}`)
    report.claim(
      'those that would not be done in time go back, and each of the ten runs once',
      quick.runs === 10 && quick.jobs === 10 && (quick.released['deferred'] ?? 0) > 0,
    )
    report.say(`— ten jobs of 4 s, limit 5 s, under one visibility of 30 s: ${JSON.stringify(slow)}`)
    report.claim(
      'what waits behind a slow job goes back for others, and each of the ten runs once',
      slow.runs === 10 && slow.jobs === 10 && slow.released['no-slot'] === 9 && slow.ms < 40_000 + slackMs,
    )
    report.say(`— SIGTERM with one job running and five fetched: ${JSON.stringify(ended)}`)
    report.claim(
      'the five go back at once, and run in another process within 2 s, while the one goes on',
      ended.released.join() === Array(5).fill('stopping').join() &&
        ended.elsewhere === 5 &&
        ended.slowestElsewhereMs < 2_000 &&
        ended.exitMs > 4_500,
    )
    report.claim(
      'the process exits with 0 when its job is done, each job runs once, and nothing is left',
      ended.code === 0 && ended.runs === 6 && ended.ended === 6 && ended.left === 0,
    )
    return { failed, hopeless, quick, slow, stop: ended }
  } finally {
    await sqs.close()
  }
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(2)
}
