import { defineOrderedTask, defineTask, type ExhaustedPayload } from 'millrace'
import type { Claim } from 'millrace/store'
import { expect, it } from 'vitest'
import { Events } from '#src/core/events.js'
import { OrderedExecution } from '#src/runtime/run/batch-execution.js'
import { JobExecution } from '#src/runtime/run/execution.js'
import type { Verdict } from '#src/runtime/run/verdict.js'
import { exhaustedHookOf } from '#src/workers/end-hooks.js'
import { notesOn } from '../runtime/updates-on.js'

const claim = (id: string): Claim => ({
  queue: 'q',
  id,
  task: 't',
  payload: '',
  payloads: [1, 2].map((score) => ({ score, payload: String(score) })),
  priority: 0,
  attempt: 1,
  crashes: 0,
  fence: 1,
  createdAt: 0,
  runAt: 0,
})
const lastOf = (error: unknown, reason = 'max-retries'): Verdict => ({
  kind: 'retry',
  delayMs: 0,
  last: true,
  error,
  reason,
})
const again: Verdict = { kind: 'retry', delayMs: 1, last: false, error: 'e' }

function batch(...ids: string[]) {
  const told: (readonly ExhaustedPayload<unknown>[])[] = []
  const task = defineOrderedTask({ name: 't', onExhausted: (payloads) => void told.push(payloads) })
  const execution = new OrderedExecution(
    task,
    ids.map((id) => ({ claim: claim(id), inputs: [1, 2], metas: [{}, {}] })),
  )
  return { execution, told }
}

it('onExhausted gets a batch after the last answer, with the jobs whose retries are over and whose end is stored', () => {
  const { execution, told } = batch('a', 'b', 'c', 'd')
  const exhaustion = exhaustedHookOf(
    execution,
    [lastOf('x'), lastOf('y'), again, lastOf('z', 'no-retries')],
    new Events(),
  )!
  exhaustion.answered('a', 'ok')
  exhaustion.answered('b', 'lost')
  exhaustion.answered('c', 'ok')
  expect(told).toEqual([])
  exhaustion.answered('d', 'ok')

  const payload = { input: 1, score: 1, meta: {} }
  expect(told).toEqual([
    [
      { ...payload, id: 'a', error: 'x' },
      { ...payload, id: 'd', error: 'z' },
    ],
  ])
})

it('onExhausted is not called if no last failure was stored, or none was for lack of retries', () => {
  const { execution, told } = batch('a')
  exhaustedHookOf(execution, [lastOf('x')], new Events())!.answered('a', undefined)

  expect(told).toEqual([])
  for (const other of [again, lastOf('x', 'unrecoverable')])
    expect(exhaustedHookOf(execution, [other], new Events())).toBeUndefined()
})

it('onExhausted gets a job whose retries are over, not an unrecoverable one', () => {
  const told: unknown[] = []
  const task = defineTask({ name: 't', onExhausted: ({ job, input, error }) => void told.push([job.id, input, error]) })
  const execution = new JobExecution(claim('a'), task, 7, {}, notesOn())
  const exhaustion = exhaustedHookOf(execution, [lastOf('x')], new Events())!
  exhaustion.answered('a', 'lost')
  exhaustion.answered('a', 'ok')

  expect(told).toEqual([['a', 7, 'x']])
  expect(exhaustedHookOf(execution, [lastOf('x', 'unrecoverable')], new Events())).toBeUndefined()
})
