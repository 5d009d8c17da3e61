/** The mill of the benchmark of scale: a step's queues, each with a blank task. */

import { defineOrderedTask, defineTask, type Mill, millrace } from 'millrace'

export interface ScaleStep {
  readonly processes: number
  readonly queues: number
  /** Shards per queue; then the queues are ordered. 0: the queues are plain. */
  readonly shards: number
  /** Jobs that wait behind the jobs that are worked off. */
  readonly waiting: number
}

interface Filled {
  readonly mill: Mill
  /** Enqueues this number of jobs, dealt evenly to all queues. */
  fill(jobs: number): Promise<void>
}

const perCall = 1_000
const input = { n: 1_234 }

export function scaleMill(store: string, { queues, shards }: ScaleStep): Filled {
  const names = Array.from({ length: queues }, (_, i) => `queue-${i}`)
  return shards === 0 ? plain(store, names) : ordered(store, names, shards)
}

function plain(store: string, names: readonly string[]): Filled {
  const tasks = names.map((queue) => defineTask({ name: queue, queue, run: async (_: typeof input) => {} }))
  const mill = millrace({ store, tasks })
  const enqueue = (queue: number, count: number) =>
    mill.enqueueMany(tasks[queue]!, new Array<typeof input>(count).fill(input))
  return { mill, fill: (jobs) => dealt(jobs, names.length, enqueue) }
}

function ordered(store: string, names: readonly string[], shards: number): Filled {
  const tasks = names.map((queue) => defineOrderedTask({ name: queue, queue, run: async () => {} }))
  const mill = millrace({ store, tasks, queues: Object.fromEntries(names.map((name) => [name, { shards }])) })
  let last = 0
  // New ids at each fill: an equal payload of a job that still waits would only merge.
  const enqueue = (queue: number, count: number) =>
    mill.enqueueMany(tasks[queue]!, new Array<typeof input>(count).fill(input), () => ({ id: `order-${++last}` }))
  return { mill, fill: (jobs) => dealt(jobs, names.length, enqueue) }
}

async function dealt(
  jobs: number,
  queues: number,
  enqueue: (queue: number, count: number) => Promise<unknown>,
): Promise<void> {
  const each = Math.ceil(jobs / queues)
  for (let queue = 0; queue < queues; queue += 1)
    for (let from = 0; from < each; from += perCall) await enqueue(queue, Math.min(perCall, each - from))
}
