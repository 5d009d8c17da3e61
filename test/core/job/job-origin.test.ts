import { describe, expect, it } from 'vitest'
import { originIn, ownMeta, storedMeta } from '#src/core/job/job-origin.js'

const parent = { queue: 'default', id: 'a', task: 'first' }

describe('an origin', () => {
  it('is stored in the meta, and read back', () => {
    const stored = storedMeta({ traceId: 7 }, { parent })

    expect(ownMeta(stored!)).toEqual({ traceId: 7 })
    expect(originIn(stored)).toEqual({ parent })
    expect(ownMeta(storedMeta(undefined, { parent })!)).toEqual({})
  })

  it('takes no space if there is none', () => {
    const meta = { traceId: 7 }

    expect(storedMeta(meta, undefined)).toBe(meta)
    expect(storedMeta(undefined, undefined)).toBeUndefined()
    expect(ownMeta(meta)).toBe(meta)
    expect(originIn(meta)).toEqual({})
    expect(originIn(undefined)).toEqual({})
  })

  it('has the trace of its span if that is valid, separate from its other fields', () => {
    const trace = { traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`, tracestate: 'vendor=1' }
    const read = (stored: unknown) => originIn({ 'millrace:origin': { parent, trace: stored } })

    expect(read(trace)).toEqual({ parent, trace })
    expect(read({ ...trace, tracestate: 'x'.repeat(513) })).toEqual({
      parent,
      trace: { traceparent: trace.traceparent },
    })
    expect(read({ ...trace, tracestate: 'a\nb', more: 1 })).toEqual({
      parent,
      trace: { traceparent: trace.traceparent },
    })
    for (const traceparent of [
      ...[
        7,
        '',
        'rubbish',
        trace.traceparent.toUpperCase(),
        `${trace.traceparent}-more`,
        `ff${trace.traceparent.slice(2)}`,
      ],
      ...[`00-${'0'.repeat(32)}-${'cd'.repeat(8)}-01`, `00-${'ab'.repeat(16)}-${'0'.repeat(16)}-01`, 'x'.repeat(1e6)],
    ])
      expect(read({ traceparent })).toEqual({ parent })
    for (const stored of [null, 7, 'text', [], {}]) expect(read(stored)).toEqual({ parent })
  })

  it('is ignored if the stored value is invalid', () => {
    for (const origin of [null, 'text', 7, {}, { parent: 'a' }, { parent: { queue: 'q', id: 7, task: 't' } }])
      expect(originIn({ 'millrace:origin': origin })).toEqual({})
  })
})
