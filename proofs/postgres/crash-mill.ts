/** The tasks of `postgres-crashes`, and what its processes share. */

import { defineOrderedTask, defineTask, type MillOptions } from 'millrace'
import * as v from 'valibot'
import { leaseMs } from '../crew.js'

const numbered = v.object({ id: v.string(), n: v.number() })

export const plain = defineTask({ name: 'plain', queue: 'plain' })

export const ordered = defineOrderedTask({
  name: 'ordered',
  queue: 'ordered',
  input: numbered,
  id: ({ id }) => id,
  score: ({ n }) => n,
  batchSize: 5,
  maxPayloads: 10,
})

const queue = { lease: leaseMs, maxCrashes: 1_000 }

export const queues: NonNullable<MillOptions['queues']> = { plain: queue, ordered: { ...queue, shards: 3 } }
