/** The first part of the demo: a checksum of each file, through three queues of different weight. */

import type { Mill } from 'millrace'
import { figure, say, seconds } from './display.js'
import { orInterrupted } from './interruption.js'
import type { Place } from './place.js'
import { queueNames } from './queues.js'
import { type Progress, workShift } from './shift.js'
import { checksum } from './tasks.js'
import { expectedShare, type Job, problemsOf, type Shares, sharesOf } from './verdict.js'

const jobsPerCall = 1_000

export interface ChecksumFigures {
  readonly jobs: number
  readonly perSecond: number
  readonly shares: Shares['of']
  readonly retries: number
}

/** Throws where a file has not exactly one result, and the right one. */
export async function checksumPart(place: Place, paths: readonly string[]): Promise<ChecksumFigures> {
  const { mill } = place
  const enqueueAt = performance.now()
  const jobs = await orInterrupted(enqueueAll(mill, paths))
  const workAt = performance.now()
  say(`enqueued ${figure(jobs.length)} jobs in ${seconds(workAt - enqueueAt)}; two worker processes begin`)
  await workShift(queueNames, () => progressOf(place, jobs))
  const verifyAt = performance.now()
  const results = await orInterrupted(place.results())
  const problems = await orInterrupted(problemsOf(jobs, results))
  const processed = (await place.depths(queueNames)).reduce((sum, depth) => sum + depth.processed, 0)
  if (processed !== jobs.length) problems.push(`${processed} jobs were completed instead of ${jobs.length}`)
  if (problems.length > 0) throw new Error(`not verified:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
  const begun = Math.min(...results.map(({ startedAt }) => startedAt))
  const ended = Math.max(...results.map(({ endedAt }) => endedAt))
  const perSecond = Math.round((jobs.length * 1_000) / Math.max(ended - begun, 1))
  const retries = results.reduce((sum, { attempt }) => sum + attempt - 1, 0)
  const shares = sharesOf(jobs, results)
  say(`verified: each file has exactly one result, and it equals a checksum made without the queue`)
  say(`${figure(perSecond)} jobs/s, ${figure(retries)} retries`)
  sayShares(shares)
  const now = performance.now()
  say(
    `${seconds(now - enqueueAt)} in all: enqueue ${seconds(workAt - enqueueAt)}, work ${seconds(verifyAt - workAt)}, verify ${seconds(now - verifyAt)}`,
  )
  return { jobs: jobs.length, perSecond, shares: shares.of, retries }
}

/** One job per file, round robin over the queues; every 50th for later, every 97th one that fails the first time. */
async function enqueueAll(mill: Mill, paths: readonly string[]): Promise<Job[]> {
  const jobs: Job[] = []
  for (let from = 0; from < paths.length; from += jobsPerCall) {
    const inputs = paths.slice(from, from + jobsPerCall).map((file) => ({ file }))
    const handles = await mill.enqueueMany(checksum, inputs, (_, i) => {
      const n = from + i
      return {
        queue: queueNames[n % queueNames.length]!,
        ...(n % 50 === 49 && { delay: 1_000 + 500 * (n % 5) }),
        ...(n % 97 === 96 && { meta: { failsFirst: true } }),
      }
    })
    for (const [i, { id }] of handles.entries()) {
      const n = from + i
      const plain = n % 50 !== 49 && n % 97 !== 96
      jobs.push({ id, queue: queueNames[n % queueNames.length]!, file: paths[n]!, plain })
    }
  }
  return jobs
}

async function progressOf(place: Place, jobs: readonly Job[]): Promise<Progress> {
  const depths = await place.depths(queueNames)
  const sum = (count: 'processed' | 'running' | 'scheduled' | 'failed') =>
    depths.reduce((total, depth) => total + depth[count], 0)
  const bars = depths.map(({ queue, processed, ready }) => {
    const of = jobs.filter((job) => job.queue === queue).length
    return { name: queue, done: processed, of, ready }
  })
  const more = `${figure(sum('running'))} running, ${figure(sum('scheduled'))} for later, ${figure(sum('failed'))} failed once`
  return { bars, more, isOver: sum('processed') >= jobs.length }
}

function sayShares({ claims, of }: Shares): void {
  say(`shares of the ${figure(claims)} claims made while all three queues had ready jobs:`)
  const percent = (part: number) => `${figure(part * 100, 2)} %`.padStart(8)
  for (const name of queueNames) {
    const expected = expectedShare(name)
    // The standard deviation of a share of so many draws.
    const chance = Math.sqrt((expected * (1 - expected)) / Math.max(claims, 1))
    say(
      `  ${name.padEnd(8)} ${percent(of[name])}   expected ${percent(expected)}, ± ${figure(chance * 100, 2)} by chance`,
    )
  }
}
