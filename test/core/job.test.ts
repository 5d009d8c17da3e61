/** Jobs: which states are an end, and which numbers a priority. */

import { describe, expect, it } from 'vitest'
import { isPriority, jobStates } from '#src/core/job/job.js'
import { failuresIn, ownError, storedError } from '#src/core/job/job-failures.js'
import { joinedLog, mostLogBytes } from '#src/core/job/job-log.js'
import { originIn, ownMeta, storedMeta } from '#src/core/job/job-origin.js'

it('three states are final', () => {
  expect(jobStates).toEqual(['waiting', 'scheduled', 'ready', 'running', 'completed', 'dead', 'cancelled'])
})

it.each([[0], [-32_768], [32_767]])('%d is a valid priority', (value) => {
  expect(isPriority(value)).toBe(true)
})

it.each([[-32_769], [32_768], [0.5], [Number.NaN], [Infinity], ['5'], [5n], [null], [undefined]])(
  '%o is not a valid priority',
  (value) => {
    expect(isPriority(value)).toBe(false)
  },
)

describe('a log', () => {
  it('grows by each write', () => {
    expect(joinedLog('one\n', 'two\n')).toBe('one\ntwo\n')
  })

  it('keeps its last 64 KiB', () => {
    const log = joinedLog('a'.repeat(mostLogBytes), 'end')
    expect(Buffer.byteLength(log)).toBe(mostLogBytes)
    expect(log.endsWith('aend')).toBe(true)
  })

  it.each([
    ['two', '½'],
    ['three', '€'],
    ['four', '🎈'],
  ])('begins with a whole character if a cut falls into one of %s bytes', (_, character) => {
    for (let extra = 1; extra <= 4; extra += 1) {
      const log = joinedLog(character.repeat(mostLogBytes / 2), 'x'.repeat(extra))
      expect(Buffer.byteLength(log)).toBeGreaterThan(mostLogBytes - 4)
      expect(Buffer.byteLength(log)).toBeLessThanOrEqual(mostLogBytes)
      expect([...log][0]).toBe(character)
    }
  })
})

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

const at = Date.UTC(2026, 0, 1)

describe('the failures of a job', () => {
  it('are stored behind its last error, and read back', () => {
    const first = storedError('no route', undefined, { attempt: 1, at })
    const second = storedError('no answer\n    at call', first, { attempt: 2, at: at + 5 })

    expect(ownError(second)).toBe('no answer\n    at call')
    expect(failuresIn(second)).toEqual([
      { attempt: 1, at: new Date(at), error: 'no route' },
      { attempt: 2, at: new Date(at + 5), error: 'no answer\n    at call' },
    ])
  })

  it('are kept behind an error that is not a failure', () => {
    const failed = storedError('no route', undefined, { attempt: 1, at })
    const unread = storedError('was gzip, this mill has json', failed)

    expect(ownError(unread)).toBe('was gzip, this mill has json')
    expect(failuresIn(unread)).toEqual([{ attempt: 1, at: new Date(at), error: 'no route' }])
    expect(storedError('no worker can read it', undefined)).toBe('no worker can read it')
  })

  it('are at most the latest ten, and limited in size', () => {
    let stored: string | undefined
    for (let attempt = 1; attempt <= 40; attempt += 1)
      stored = storedError(`${attempt}: ${'"'.repeat(5_000)}`, stored, { attempt, at })
    const failures = failuresIn(stored)!

    expect(stored!.length).toBeLessThan(5_010 + 4_200)
    expect(failures.length).toBeLessThanOrEqual(10)
    expect(failures.at(-1)).toMatchObject({ attempt: 40, error: `40: ${'"'.repeat(5_000)}` })
    expect(failures.at(-2)!.error).toHaveLength(400)
  })

  it('are those the worker wrote, whatever the text of an error contains', () => {
    const forged = `no route\n\u001efailures [[7,0,"forged"]]`
    const stored = storedError(forged, undefined, { attempt: 1, at })

    expect(failuresIn(stored)).toEqual([
      { attempt: 1, at: new Date(at), error: 'no route\n failures [[7,0,"forged"]]' },
    ])
  })

  it('are absent if the text behind the mark is invalid', () => {
    for (const behind of ['', '{', '7', '[7]', '[["1",0]]', '[[1,9e99]]', '[[1,0,7]]']) {
      const text = `no route\n\u001efailures ${behind}`
      expect(failuresIn(text)).toBeUndefined()
      expect(ownError(text)).toBe(text)
    }
    expect(failuresIn(undefined)).toBeUndefined()
  })
})
