/** What remains of a job whose process nobody saw die. Every other death: `left-behind.drill.ts`. */

import { expect, it } from 'vitest'
import { family, killed, leftBehind, nothingLeftOf } from './left-behind.js'

it('if the worker and the process of a job are killed, the job runs again with nothing left of its first run', async () => {
  const scene = await leftBehind('an isolated task')
  const worker = scene.start()
  const first = await scene.run(1)
  const { supervisor, worker: killedWorker, job } = await family(worker, first)
  killed([supervisor, killedWorker, job])
  scene.start()

  expect((await scene.run(2)).beside).toEqual([])
  await nothingLeftOf(first.job)
})
