/** A worker process of Kale's stop: begins when it is told to, says what becomes of its jobs, and goes at SIGTERM. */

import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { millrace } from 'millrace'
import { type KaleWord, keptLease, stopped } from './kale-scenes.js'

const [store = '', namespace = '', firstMs = '0'] = process.argv.slice(2)
const say = (word: KaleWord) => process.send?.(word)

let begun = 0
const task = stopped.handle(async (n) => {
  begun += 1
  say({ kind: 'begun', job: n as number })
  if (begun === 1) await delay(Number(firstMs))
  say({ kind: 'ended', job: n as number })
})
const mill = millrace({ store, namespace, tasks: [task], queues: { default: keptLease('10m') } })
mill.on('job.released', ({ reason }) => say({ kind: 'released', reason }))
await mill.depths()
process.once('SIGTERM', async () => {
  await mill.close()
  process.disconnect()
})
say({ kind: 'ready' })
await once(process, 'message')
await mill.worker({ concurrency: 1 }).start()
