/** A revive of all dead jobs on SQS, beside a worker under which they die again. */

import { expect, it } from 'vitest'
import { sqsScenes } from './sqs-scene.js'

const scene = sqsScenes()

it('a job that dies again is revived once, and the next revive takes it', async () => {
  const { add, claim, settle, advance, open, store } = await scene()
  let runs = 0
  const worked = async () => {
    for (const job of await claim()) {
      runs += 1
      await settle(job, { kind: 'bury', reason: 'unrecoverable' })
    }
  }
  await add([{ id: 'a' }, { id: 'b' }])
  await worked()
  advance(1_000)
  let polls = 0
  const operator = await open(async () => {
    polls += 1
    if (polls > 20) throw new Error('it goes on and on')
    advance(1_000)
    await worked()
  })

  expect(await operator.morgue.revive('mail', 'all')).toEqual({ changed: 2, more: false })
  expect(runs).toBe(4)
  advance(120_000)
  expect((await store.depth(['mail'])).depths[0]).toMatchObject({ ready: 0, dead: 2 })
  expect(await operator.morgue.revive('mail', 'all')).toMatchObject({ changed: 2 })
})
