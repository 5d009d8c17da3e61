/** Proof: isolated jobs leave nothing in their worker. It has not grown after a thousand of them. */

import type { Report, Summary } from '../report.js'
import { growth } from './long-growth.js'

export const seed = 0

const [few, many] = [200, 1_000]

export async function prove(report: Report): Promise<Summary> {
  const [before, after] = await growth(few, many)
  const heapPerJob = (after.heapUsed - before.heapUsed) / (many - few)
  report.say(`a worker after ${few} jobs: ${JSON.stringify(before)}; after ${many}: ${JSON.stringify(after)}`)
  report.claim(
    'no handle and no zombie more',
    after.handles <= before.handles && after.open <= before.open && after.zombies === 0,
  )
  report.claim(`at most 1 KB of heap a job (${heapPerJob.toFixed(0)} B)`, heapPerJob <= 1_024)
  report.say(`resident memory with the garbage of all threads collected: ${(after.rss / before.rss).toFixed(3)} ×`)
  const ratio = after.uncollected / before.uncollected
  report.claim(`resident memory at most 1.1 × (${ratio.toFixed(3)})`, ratio <= 1.1)
  return { before, after }
}
