import { defineTask } from 'millrace'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Events } from '#src/core/events.js'
import { JobExecution } from '#src/runtime/run/execution.js'
import { TimeLimits } from '#src/runtime/run/time-limits.js'
import { claimOf } from './claim-of.js'
import { notesOn } from './updates-on.js'

const claim = claimOf({ attempt: 2 })

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function subject(options: { timeLimit: number; slowAfter?: number }) {
  const task = defineTask({ name: 't', ...options })
  const events = new Events()
  const slow: unknown[] = []
  events.on('job.slow', (event) => slow.push(event))
  const givenUp: [string, Error][] = []
  const limits = new TimeLimits(
    events,
    ({ leased }, reason) => givenUp.push([leased[0]!.claim.id, reason]),
    () => performance.now(),
  )
  const started = (id: string) => {
    const execution = new JobExecution({ ...claim, id }, task, 1, {}, notesOn())
    limits.start(execution)
    return execution
  }
  return { limits, slow, givenUp, started }
}

it('time limits report a slow job, abort it at its limit, and give it up as long again after that, at most 5 s', () => {
  for (const [timeLimit, grace] of [
    [2_000, 2_000],
    [60_000, 5_000],
  ] as const) {
    const { slow, givenUp, started } = subject({ timeLimit, slowAfter: 500 })
    const execution = started('a')
    vi.advanceTimersByTime(499)
    expect(slow).toEqual([])
    vi.advanceTimersByTime(1)
    expect(slow).toEqual([{ queue: 'q', id: 'a', task: 't', attempt: 2, runMs: 500 }])
    vi.advanceTimersByTime(timeLimit - 501)
    expect(execution.signal.aborted).toBe(false)
    vi.advanceTimersByTime(1)
    expect(execution.signal.reason).toMatchObject({ code: 'time-limit-exceeded' })
    vi.advanceTimersByTime(grace - 1)
    expect(givenUp).toEqual([])
    vi.advanceTimersByTime(1)
    expect(givenUp).toEqual([['a', expect.objectContaining({ code: 'time-limit-exceeded' })]])
    vi.advanceTimersByTime(120_000)
    expect([slow.length, givenUp.length]).toEqual([1, 1])
  }
})

it('time limits ignore a job that has ended, before its limit or during its grace', () => {
  const { limits, slow, givenUp, started } = subject({ timeLimit: 1_000, slowAfter: 500 })
  const quick = started('quick')
  const late = started('late')
  limits.stop(quick)
  vi.advanceTimersByTime(1_500)
  limits.stop(late)
  vi.advanceTimersByTime(60_000)

  expect(quick.signal.aborted).toBe(false)
  expect(late.signal.aborted).toBe(true)
  expect(slow).toMatchObject([{ id: 'late' }])
  expect(givenUp).toEqual([])
})
