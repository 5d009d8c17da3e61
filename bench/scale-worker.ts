/** A worker of the benchmark of scale, in a process of its own. It begins, is counted while it works, and ends. */

import type { Mill } from 'millrace'
import { type ScaleStep, scaleMill } from './scale-mill.js'

export type ScaleOrder = { readonly begin: ScaleStep } | 'count' | 'end'

/** Completions and costs since it began. */
export interface ScaleCount {
  readonly jobs: number
  readonly cpuMs: number
}

const concurrency = 100
const [url = ''] = process.argv.slice(2)
let mill: Mill | undefined
let jobs = 0
let cpu = process.cpuUsage()

async function begin(step: ScaleStep): Promise<void> {
  mill = scaleMill(url, step).mill
  mill.on('job.completed', () => {
    jobs += 1
  })
  await mill.depths()
  jobs = 0
  cpu = process.cpuUsage()
  await mill.worker({ concurrency }).start()
}

function count(): ScaleCount {
  const { user, system } = process.cpuUsage(cpu)
  return { jobs, cpuMs: (user + system) / 1_000 }
}

process.once('disconnect', () => process.exit())
process.on('message', async (order: ScaleOrder) => {
  if (typeof order === 'object') await begin(order.begin)
  const counted = count()
  if (order === 'end') await mill?.close()
  process.send?.(counted)
})
process.send?.('ready')
