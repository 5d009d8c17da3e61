/**
 * The neighbour of the tenants proof: a process that, from its first message on, enqueues a job every 5 ms in a queue of its own,
 * and runs it. At each further message it sends how late the handlers have begun since it was last asked, in ms.
 */

import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'
import { machineMs } from '../forked-program.js'

const everyMs = 5

const [store = ''] = process.argv.slice(2)
let late: number[] = []
const tick = defineTask({ name: 'tick', queue: 'beside', run: (at: number) => void late.push(machineMs() - at) })

let hasBegun = false
const begin = once(process, 'message')
process.on('message', () => {
  if (hasBegun) {
    process.send?.(late)
    late = []
  }
  hasBegun = true
})
await begin
const mill = millrace({ store, queues: { beside: {} }, tasks: [tick] })
await mill.worker({ queues: ['beside'], concurrency: 10 }).start()

let isOver = false
process.once('disconnect', () => (isOver = true))

for (let at = machineMs(); !isOver; at += everyMs) {
  // Not awaited: a slow answer must not make the next job late.
  void mill.enqueue(tick, machineMs())
  await delay(Math.max(0, at + everyMs - machineMs()))
}
await mill.close()
