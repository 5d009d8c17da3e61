import { defineTask, hold, UnrecoverableError } from 'millrace'
import { describe, expect, it } from 'vitest'
import { InvalidArgumentError } from '#src/core/errors.js'
import { verdictOnFailure, verdictOnReturn } from '#src/runtime/run/verdict.js'

const ignore = () => {}
const random = () => 0.5

describe('the verdict on a failure', () => {
  it('is another run while attempts are left, and burial at the last', () => {
    const task = defineTask({ name: 't', retry: { max: 2, backoff: (failures) => failures * 10 } })
    const verdicts = [1, 2, 3].map((attempt) => verdictOnFailure(task, new Error('x'), attempt, random, ignore))

    expect(verdicts).toMatchObject([
      { kind: 'retry', delayMs: 10, last: false },
      { kind: 'retry', delayMs: 20, last: false },
      { kind: 'retry', last: true, reason: 'max-retries' },
    ])
  })

  it('is burial at once for an unrecoverable error, even if no attempt is left', () => {
    const task = defineTask({ name: 't', retry: { max: 0 } })
    expect(verdictOnFailure(task, new UnrecoverableError('x'), 1, random, ignore)).toMatchObject({
      last: true,
      reason: 'unrecoverable',
    })
    expect(verdictOnFailure(task, new Error('x'), 1, random, ignore)).toMatchObject({
      last: true,
      reason: 'no-retries',
    })
  })

  it('is another run with the default backoff if retry.when or the backoff throws, which is reported', () => {
    const broken = () => {
      throw new Error('broken')
    }
    const task = defineTask({ name: 't', retry: { when: broken, backoff: broken } })
    const hooks: string[] = []

    expect(verdictOnFailure(task, new Error('x'), 1, random, (hook) => hooks.push(hook))).toMatchObject({
      kind: 'retry',
      delayMs: 30_000,
      last: false,
    })
    expect(hooks).toEqual(['retry.when', 'retry.backoff'])
  })
})

describe('the verdict on a returned value', () => {
  it('is a release to the old place for hold(), with the duration of the hold on its group or queue', () => {
    expect(verdictOnReturn(hold('30s'))).toEqual({
      kind: 'release',
      delayMs: 0,
      reason: 'held',
      holdMs: 30_000,
    })
  })

  it('is none for an outcome of an unknown kind, from a later version or a stand-in', () => {
    const later = { [Symbol.for('millrace.outcome')]: { kind: 'later' } }
    const standIn: object = new Proxy({}, { has: () => true, get: () => standIn })
    for (const returned of [later, standIn]) expect(() => verdictOnReturn(returned)).toThrow(InvalidArgumentError)
  })
})
