import type { Store } from 'millrace/store'
import { expect, it } from 'vitest'
import { keptSparks, type SparkReader } from '#src/web/state/sparks.js'

const store = {} as Store

it('cached sparks are read again after their time, and for other queues', async () => {
  let mono = 0
  const reads: string[] = []
  const read: SparkReader = async (_, queues) => {
    reads.push(`${mono}: ${queues.join()}`)
    return queues.map(() => ({ enqueued: [mono], done: [], failed: [] }))
  }
  const kept = keptSparks(read, 5_000, () => mono)
  for (const [at, queues] of [
    [0, ['a', 'b']],
    [4_999, ['a', 'b']],
    [5_000, ['a', 'b']],
    [6_000, ['a']],
  ] as const) {
    mono = at
    await kept(store, queues, 0)
  }

  expect(reads).toEqual(['0: a,b', '5000: a,b', '6000: a'])
  expect(await kept(store, ['a'], 0)).toEqual([{ enqueued: [6_000], done: [], failed: [] }])
})

it('a failed reading is repeated on the next look', async () => {
  let calls = 0
  const kept = keptSparks(
    async () => {
      calls += 1
      if (calls === 1) throw new Error('away')
      return []
    },
    5_000,
    () => 0,
  )

  await expect(kept(store, [], 0)).rejects.toThrow('away')
  expect(await kept(store, [], 0)).toEqual([])
})
