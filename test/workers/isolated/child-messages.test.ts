import { describe, expect, it } from 'vitest'
import { childMessageIn } from '#src/workers/isolated/child-messages.js'

const settled = (more: object) => ({ kind: 'settled', verdict: { kind: 'complete', answer: 'ok', runMs: 5, ...more } })

describe('a message from the process of an isolated job', () => {
  it('is its verdict, with what its handler has enqueued', () => {
    for (const more of [{}, { enqueued: { mail: 3 } }]) expect(childMessageIn(settled(more))).toEqual(settled(more))
  })

  it.each([null, 3, { mail: '3' }, { mail: Number.NaN }, { mail: -1 }, { mail: 0.5 }, { '}': 1 }])(
    'is ignored with enqueued counts %j: the job may write to the channel as well',
    (enqueued) => {
      expect(childMessageIn(settled({ enqueued }))).toBeUndefined()
    },
  )
})
