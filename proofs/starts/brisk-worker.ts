/** A worker of the proof of brisk starts: few slots, and handlers that take no time, a moment, or the event loop. */

import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'
import { type BriskEnd, brisk, type Handler, slots, throttle } from './brisk-words.js'

const [store, handler] = process.argv.slice(2) as [string, Handler]
const starts: number[] = []
const counts = { mostClaimed: 0, wasted: 0, late: 0 }
const blockMs = 3

async function run(): Promise<void> {
  const startedAt = Number(process.hrtime.bigint() / 1_000n) / 1_000
  starts.push(startedAt)
  if (handler === 'in turns') await delay(1 + (starts.length % 5))
  // A burst of them would keep the loop from the others for longer than their spread.
  if (handler === 'blocking') while (Number(process.hrtime.bigint() / 1_000n) / 1_000 < startedAt + blockMs);
}

const mill = millrace({
  store,
  queues: { [brisk]: { throttle } },
  tasks: [defineTask({ name: 'begin', queue: brisk, run })],
})
mill.on('queue.claimed', ({ jobs }) => {
  counts.mostClaimed = Math.max(counts.mostClaimed, jobs)
})
mill.on('job.completed', () => void process.send!('completed'))
mill.on('permit.wasted', () => {
  counts.wasted += 1
})
mill.on('start.late', () => {
  counts.late += 1
})
process.on('message', async () => {
  await mill.close()
  process.send!({ starts, ...counts } satisfies BriskEnd, () => process.exit())
})
await mill.worker({ concurrency: slots }).start()
