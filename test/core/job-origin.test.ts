import { describe, expect, it } from 'vitest'
import { originIn, ownMeta, storedMeta } from '#src/core/job-origin.js'

const parent = { queue: 'default', id: 'a', task: 'first' }

describe('an origin', () => {
  it('is stored in the meta, and taken apart again', () => {
    const stored = storedMeta({ traceId: 7 }, { parent })

    expect(ownMeta(stored!)).toEqual({ traceId: 7 })
    expect(originIn(stored)).toEqual({ parent })
    expect(ownMeta(storedMeta(undefined, { parent })!)).toEqual({})
  })

  it('costs nothing where there is none', () => {
    const meta = { traceId: 7 }

    expect(storedMeta(meta, undefined)).toBe(meta)
    expect(storedMeta(undefined, undefined)).toBeUndefined()
    expect(ownMeta(meta)).toBe(meta)
    expect(originIn(meta)).toEqual({})
    expect(originIn(undefined)).toEqual({})
  })

  it('is left out where what is stored under its key is none', () => {
    for (const origin of [null, 'text', 7, {}, { parent: 'a' }, { parent: { queue: 'q', id: 7, task: 't' } }])
      expect(originIn({ 'millrace:origin': origin })).toEqual({})
  })
})
