import { bury, cancel, defineOrderedTask, snooze } from 'millrace'
import { describe, expect, it } from 'vitest'
import { InvalidArgumentError, JobCancelledError, LeaseLostError } from '#src/core/errors.js'
import { batchesOf, type DecodedClaim, OrderedExecution } from '#src/runtime/run/batch-execution.js'
import { claimOf } from './claim-of.js'

const decoded = (id: string, fence = 1): DecodedClaim => {
  const claim = claimOf({ id, fence, payload: '', payloads: [{ score: 1, payload: '1' }] })
  return { claim, inputs: [1], metas: [{}] }
}
const task = defineOrderedTask({ name: 't' })
const cancelled = (id: string) => new JobCancelledError('q', id)

function begun(...ids: string[]) {
  const batch = new OrderedExecution(
    task,
    ids.map((id) => decoded(id)),
  )
  batch.begunAt = 1
  return batch
}

describe('claims', () => {
  it('form batches up to a size, in order, each with one fence', () => {
    const claims = [decoded('a', 5), decoded('b', 5), decoded('c', 5), decoded('d', 7), decoded('e', 5)]
    const ids = (size: number) => batchesOf(claims, size).map((batch) => batch.map(({ claim }) => claim.id).join(''))

    expect(ids(2)).toEqual(['ab', 'c', 'd', 'e'])
    expect(ids(10)).toEqual(['abc', 'd', 'e'])
    expect(batchesOf([], 1)).toEqual([])
  })
})

describe('a batch', () => {
  it('goes on while one of its jobs is not cancelled, and is aborted when all are', () => {
    const batch = begun('a', 'b')
    batch.leased[0]!.abort(cancelled('a'))
    expect(batch.signal.aborted).toBe(false)
    batch.leased[1]!.abort(cancelled('b'))

    expect(batch.signal.reason).toBeInstanceOf(JobCancelledError)
  })

  it('does not count a refused job as one that goes on', () => {
    const batch = begun('a', 'b')
    batch.leased[0]!.refusal = { kind: 'bury', reason: 'bad-payload' }
    batch.leased[1]!.abort(cancelled('b'))

    expect(batch.abortReason).toBeInstanceOf(JobCancelledError)
  })

  it('is aborted as a whole if one lease is lost, even that of a cancelled job', () => {
    const batch = begun('a', 'b', 'c')
    batch.leased[1]!.abort(cancelled('b'))
    batch.leased[1]!.abort(new LeaseLostError('q', 'b'))

    expect(batch.signal.reason).toBeInstanceOf(LeaseLostError)
  })

  it('is not aborted before it has begun: lost or cancelled jobs are then taken out', () => {
    const batch = new OrderedExecution(task, [decoded('a'), decoded('b')])
    batch.leased[0]!.abort(new LeaseLostError('q', 'a'))

    expect(batch.abortReason).toBeUndefined()
    expect(batch.leased[0]!.abortReason).toBeInstanceOf(LeaseLostError)
  })

  it('accepts the failure of an id, also as a number, until its verdict', () => {
    const batch = begun('1', 'b')
    batch.fail(1, 'first')
    batch.fail('1', 'second')
    expect(batch.more(1)).toBe(false)
    expect(batch.leased.map(({ failure }) => failure)).toEqual([{ error: 'second' }, undefined])
    batch.isDecided = true

    expect(() => batch.fail('b', 'late')).toThrow(
      expect.objectContaining({
        code: 'argument-invalid',
        message: expect.stringMatching(/^ctx\.fail\(\) was called for "b" when the run had ended.*Await everything/),
      }),
    )
    expect(batch.leased[1]!.failure).toBeUndefined()
  })

  it.each([2, Number.NaN, undefined, {}])('refuses the unknown id %s', (id) => {
    const message = /^ctx\.fail\(\) was given .*, which is no id of this batch/
    expect(() => begun('1').fail(id as never, 'e')).toThrow(message)
  })

  it.each([snooze('1s'), cancel(), bury('why')])('refuses an outcome instead of an error', (outcome) => {
    const batch = begun('a')

    expect(() => batch.fail('a', outcome)).toThrow(InvalidArgumentError)
    expect(() => batch.fail('a', outcome)).toThrow(/given an outcome for "a".*for the whole batch: return them/)
    expect(batch.leased[0]!.failure).toBeUndefined()
  })

  it('accepts an error that throws when it is read', () => {
    const batch = begun('a')
    const has = () => {
      throw new Error('not to be looked at')
    }
    const error = new Proxy({}, { has })
    batch.fail('a', error)

    expect(batch.leased[0]!.failure?.error === error).toBe(true)
  })

  it('passes its progress to the lease of each of its jobs', () => {
    const batch = begun('a', 'b')
    batch.progress(0.5)

    expect(batch.leased.map(({ unsentProgress }) => unsentProgress)).toEqual([{ fraction: 0.5 }, { fraction: 0.5 }])
  })
})
