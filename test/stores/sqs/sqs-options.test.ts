/** What becomes of every option on SQS: a table that does not compile when one is missing. */

import { readFileSync } from 'node:fs'
import { defineOrderedTask, defineTask, type EnqueueOptions, millrace, type QueueOptions } from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { testMillOn } from '../../test-mill.js'
import { sqsScenes } from './sqs-scene.js'

type Fate = 'works' | 'refused' | 'has no effect'
/** By option: what becomes of it, and a value that shows it. */
type Fates<Options> = { readonly [Option in keyof Required<Options>]: readonly [Fate, Options[Option]] }

const plain = defineTask({ name: 'send', queue: 'mail', run() {} })
const ordered = defineOrderedTask({ name: 'sync', input: z.object({ id: z.string() }), id: ({ id }) => id })

/** Of a plain queue, but where only an ordered one has it. */
const queueOptions: Fates<QueueOptions> = {
  weight: ['works', 5],
  groupWeights: ['refused', { acme: 2 }],
  claimSize: ['works', 20],
  iterations: ['works', 2],
  longPoll: ['works', '10s'],
  lease: ['works', '11h45m'],
  renewLease: ['works', false],
  order: ['refused', 'lifo'],
  fifo: ['works', true],
  ordered: ['works', true],
  shards: ['has no effect', 4],
  exclusive: ['refused', 'shard'],
  shardOrder: ['has no effect', 'sequential'],
  maxPending: ['refused', 100],
  maxCrashes: ['has no effect', 5],
  throttle: ['refused', { limit: 1, window: '1s' }],
  maxRunning: ['refused', 2],
  retention: ['has no effect', { dead: { age: '1d' }, results: 'none' }],
}
const ofOrdered = new Set(['ordered', 'shards', 'exclusive', 'shardOrder'])

const enqueueOptions: Fates<EnqueueOptions<string>> = {
  id: ['refused', 'welcome-42'],
  delay: ['works', '20m'],
  runAt: ['works', '2100-01-01T00:00:00Z'],
  priority: ['refused', 3],
  meta: ['works', { from: 'a test' }],
  group: ['works', 'one'],
  queue: ['works', 'mail'],
  expiresIn: ['refused', '2m'],
  ifWaiting: ['refused', 'keep'],
  atMost: ['refused', '1m'],
  idempotency: ['refused', '1m'],
  fields: ['refused', { order: '4711' }],
}

const refusal = expect.objectContaining({ code: 'unsupported-by-store' })

describe('every option of a queue', () => {
  it.each(Object.entries(queueOptions))(
    'is accepted or refused when the mill is created: %s',
    (option, [fate, value]) => {
      const queues = { [ofOrdered.has(option) ? 'sync' : 'mail']: { [option]: value } }
      const make = () => millrace({ store: 'sqs://eu-central-1', tasks: [plain, ordered], queues })

      if (fate === 'refused') expect(make).toThrow(refusal)
      else expect(make).not.toThrow()
    },
  )

  it('without effect is listed in the documentation', () => {
    const page = readFileSync(new URL('../../../docs/stores/sqs.md', import.meta.url), 'utf8')
    const [, named = ''] = /((?:`\w+`(?:,\s|\sand\s)?)+)\s+have no effect/.exec(page) ?? []
    const idle = Object.entries(queueOptions).filter(([, [fate]]) => fate === 'has no effect')

    expect([...named.matchAll(/\w+(?=`)/g)].map(([option]) => option).sort()).toEqual(
      idle.map(([option]) => option).sort(),
    )
  })
})

describe('every option of an enqueue', () => {
  const scene = sqsScenes()

  it.each(Object.entries(enqueueOptions))(
    'is accepted, or refused with nothing sent: %s',
    async (option, [fate, value]) => {
      const { store } = await scene()
      const mill = testMillOn(store, { tasks: [plain], queues: { mail: {} } })
      const sent = mill.enqueue(plain, {}, { [option]: value })
      if (fate === 'refused') await expect(sent).rejects.toEqual(refusal)
      else await sent
      const { ready, scheduled } = await mill.queue('mail').depth()

      expect(ready + scheduled).toBe(fate === 'refused' ? 0 : 1)
    },
  )
})
