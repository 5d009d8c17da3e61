/**
 * A worker program that runs isolated jobs. When the given numbers of jobs are completed, it prints its resources, a
 * line of JSON each.
 */

import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadMill } from '#src/mill/load-mill.js'

const marks = process.argv.slice(2).map(Number)
// Opened from the beginning, because it is a handle too.
const { stdin } = process
const collect = new BroadcastChannel('collect')
const { mill, files } = await loadMill({
  cwd: process.cwd(),
  env: process.env,
  configs: [join(import.meta.dirname, 'long.config.ts')],
})
let completed = 0
let told: () => void = () => {}
mill.on('job.completed', () => {
  completed += 1
  if (completed === marks[0]) told()
})
const worker = mill.worker({ concurrency: 2 }, { isSupervised: false, blockedTo: 2, files })
await worker.start()
while (marks.length > 0) {
  await new Promise<void>((resolve) => {
    told = resolve
  })
  marks.shift()
  // The last processes are still ending.
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  const { rss: uncollected } = process.memoryUsage()
  // Tells each thread. A channel does not hear itself.
  collect.postMessage('now')
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  const { heapUsed, rss } = process.memoryUsage()
  // Timers come and go, so they do not count.
  const handles = process.getActiveResourcesInfo().filter((name) => name !== 'Timeout').length
  console.log(JSON.stringify({ completed, heapUsed, rss, uncollected, handles, zombies: zombies(), open: openFiles() }))
  if (marks.length === 0) break
  process.stdout.write('')
  await once(stdin, 'data')
}
await mill.close()
process.exit()

/** Children that have ended but were not reaped. */
function zombies(): number {
  return readdirSync('/proc').filter((name) => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return state === 'Z' && Number(parent) === process.pid
    } catch {
      return false
    }
  }).length
}

function openFiles(): number {
  return readdirSync('/proc/self/fd').length
}
