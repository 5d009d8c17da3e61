/** A producer process of the mill of everything: enqueues jobs of every kind at a steady pace until it is ended. */

import { setTimeout as delay } from 'node:timers/promises'
import { type ProcessSample, processSample } from '../process-sample.js'
import type { Kind } from './effect-lines.js'
import { monotonicMs } from './effect-lines.js'
import mill, { chained, delayed, grouped, ledger, long, ordered, plain, throttled } from './everything-mill.js'

export interface ProducerSample extends ProcessSample {
  /** Enqueues that were rejected so far. */
  readonly failures: number
}

/** `name`: no other producer may send revisions of its ids. `slowMs`: how long one plain job in a hundred takes. */
const [perSecond = '100', name = '', slowMs = '0'] = process.argv.slice(2)
/** So often, each time as many as fall into it. */
const beatMs = 100
const [entities, groups] = [500, 40]
let failures = 0
let n = 0

const work = (ms = 0) => ({ at: monotonicMs(), ms })
const noted = async (kind: Kind, enqueued: Promise<{ readonly id: string }>, rev = '') => {
  const { id } = await enqueued
  ledger?.accepted(kind, [`${id}${rev}`])
}

async function beat(count: number): Promise<void> {
  const jobs: Promise<unknown>[] = []
  for (let i = 0; i < count; i += 1) {
    n += 1
    const group = `g${n % groups}`
    if (n % 3_000 === 0) jobs.push(noted('long', mill.enqueue(long, work())))
    else if (n % 20 === 1)
      jobs.push(
        noted(
          'ordered',
          mill.enqueue(ordered, { ...work(n % 100 === 1 ? 20 : 0), id: `e${name}${n % entities}`, rev: n }),
          `:${n}`,
        ),
      )
    else if (n % 20 === 2) jobs.push(noted('throttled', mill.enqueue(throttled, work(), { group })))
    else if (n % 20 === 3) jobs.push(noted('grouped', mill.enqueue(grouped, work(1), { group })))
    else if (n % 20 === 4) jobs.push(noted('delayed', mill.enqueue(delayed, work(), { delay: (n % 50) * 100 })))
    else if (n % 1_200 === 5) jobs.push(noted('chained', mill.enqueue(chained, { ...work(), link: 1 })))
    else jobs.push(noted('plain', mill.enqueue(plain, work(n % 100 === 0 ? Number(slowMs) : 0), { priority: n % 3 })))
  }
  for (const { status } of await Promise.allSettled(jobs)) if (status === 'rejected') failures += 1
}

process.on('message', () => {
  const sample: ProducerSample = { ...processSample(), failures }
  process.send!(sample)
})

let isEnding = false
process.once('SIGTERM', () => {
  isEnding = true
})
for (let due = monotonicMs(); !isEnding; due += beatMs) {
  await beat(Math.round((Number(perSecond) * beatMs) / 1_000))
  await delay(Math.max(0, due + beatMs - monotonicMs()))
}
await mill.close()
process.disconnect()
