/**
 * The demo: checksums of real files, made by two worker processes through three queues, and verified without them.
 *
 *   npm run demo [-- DIR] [--json] [--keep]        on a SQLite file of its own, or the Redis of MILLRACE_STORE
 */

import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Mill } from 'millrace'
import { Display, figure, seconds } from './display.js'
import { filesOf } from './files.js'
import { Place } from './place.js'
import { queueNames } from './queues.js'
import { checksum } from './tasks.js'
import { expectedShare, type Job, problemsOf, resultsOf, type Shares, sharesOf } from './verdict.js'
import { Workers } from './workers.js'

const mostFiles = 20_000
const jobsPerCall = 1_000
const processes = 2
/** Of each process. Small, so that claims are small and there are many draws to count. */
const concurrency = 4
/** No job done for so long: something hangs. */
const patienceMs = 60_000

const { values: flags, positionals } = parseArgs({
  options: { json: { type: 'boolean' }, keep: { type: 'boolean' } },
  allowPositionals: true,
})
// npm changes to the package's folder; INIT_CWD is where the user stood.
const folder =
  positionals[0] === undefined
    ? fileURLToPath(new URL('../../node_modules', import.meta.url))
    : resolve(process.env['INIT_CWD'] ?? process.cwd(), positionals[0])

const interrupted = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => reject(new Error(`interrupted by ${signal}`)))
})
interrupted.catch(() => {})
const orInterrupted = <T>(work: Promise<T>): Promise<T> => Promise.race([interrupted, work])

const say = (line = '') => process.stdout.write(`${line}\n`)

async function demo(): Promise<void> {
  const { paths, bytes, more } = await filesOf(folder, mostFiles)
  if (paths.length === 0) throw new Error(`there are no readable files in ${folder}`)
  say(`${figure(paths.length)}${more ? ' of the many' : ''} files of ${folder}, ${figure(bytes / 1e6, 1)} MB`)
  if (more) say(`(more than ${figure(mostFiles)} are not taken)`)
  const place = await Place.open()
  try {
    await run(place, paths)
  } finally {
    const kept = await place.close(flags.keep === true)
    if (kept !== undefined) say(`kept: ${kept}`)
  }
}

async function run(place: Place, paths: readonly string[]): Promise<void> {
  const { mill } = place
  const enqueueAt = performance.now()
  const jobs = await orInterrupted(enqueueAll(mill, paths))
  const workAt = performance.now()
  say(`enqueued ${figure(jobs.length)} jobs in ${seconds(workAt - enqueueAt)}; two worker processes begin`)
  await work(place, jobs)
  const verifyAt = performance.now()
  const results = await orInterrupted(resultsOf(mill))
  const problems = await orInterrupted(problemsOf(jobs, results))
  const processed = (await place.depths()).reduce((sum, depth) => sum + depth.processed, 0)
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
  if (flags.json) say(JSON.stringify({ verified: true, jobs: jobs.length, perSecond, shares: shares.of, retries }))
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

/** Starts the workers, shows what they do, and stops them when nothing is left. */
async function work(place: Place, jobs: readonly Job[]): Promise<void> {
  const jobsOf = new Map(queueNames.map((name) => [name, jobs.filter(({ queue }) => queue === name).length]))
  const workers = new Workers(processes, concurrency)
  try {
    await orInterrupted(Promise.race([workers.failed, untilDone(place, new Display(jobsOf), jobs.length)]))
  } catch (error) {
    // What went wrong first is what matters.
    await workers.stop().catch(() => {})
    throw error
  }
  await workers.stop()
}

async function untilDone(place: Place, display: Display, jobs: number): Promise<void> {
  let [done, changedAt] = [0, performance.now()]
  while (done < jobs) {
    await delay(display.everyMs)
    const depths = await place.depths()
    const before = done
    done = depths.reduce((sum, { processed }) => sum + processed, 0)
    if (done > before) changedAt = performance.now()
    display.show(depths, done >= jobs)
    if (performance.now() - changedAt > patienceMs)
      throw new Error(`no job was done for ${seconds(patienceMs)}; ${done} of ${jobs} are`)
  }
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

try {
  await demo()
} catch (error) {
  process.stderr.write(`demo: ${(error as Error).message}\n`)
  process.exitCode = 1
}
process.exit()
