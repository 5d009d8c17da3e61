/** What hears how a run has ended: `settle` of middleware, in workers and in the processes of isolated jobs. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  defineOrderedTask,
  defineTask,
  type EndAnswer,
  type ExhaustedPayload,
  type Middleware,
  type RunEnd,
} from 'millrace'
import { describe, expect, it } from 'vitest'
import { Events } from '#src/core/events.js'
import { OrderedExecution } from '#src/runtime/run/batch-execution.js'
import { JobExecution } from '#src/runtime/run/execution.js'
import type { Verdict } from '#src/runtime/run/verdict.js'
import { exhaustedHookOf } from '#src/workers/end-hooks.js'
import { CommandProcess } from '../cli/command-process.js'
import { project } from '../cli/project.js'
import { recorded } from '../next-event.js'
import { claimOf } from '../runtime/claim-of.js'
import { notesOn } from '../runtime/updates-on.js'
import { scriptedTask } from '../scripted-task.js'
import { testMill } from '../test-mill.js'

interface Heard {
  readonly ends: readonly RunEnd[]
  readonly answers: readonly EndAnswer[]
}

function hearing() {
  const heard: Heard[] = []
  const middleware: Middleware = {
    async settle(_, ends, answers) {
      heard.push({ ends, answers: await answers })
    },
  }
  return { heard, middleware }
}

describe('a middleware with `settle`', () => {
  it.each([
    ['ok', { kind: 'completed' }],
    ['fail', { kind: 'failed', reason: 'no-retries', error: new Error('failed at attempt 1') }],
    ['bury', { kind: 'buried', reason: 'as told' }],
    ['cancel', { kind: 'cancelled', reason: 'as told' }],
    ['snooze', { kind: 'released', reason: 'snoozed' }],
  ] as const)('gets the end of a job, and the answer of the store: %s', async (step, end) => {
    const { heard, middleware } = hearing()
    const task = scriptedTask({ max: 0 })
    const mill = testMill({ tasks: [task], middleware: [middleware] })
    const { id } = await mill.enqueue(task, { steps: [step, 'ok'] })
    await mill.worker().start()
    await expect.poll(() => heard.length).toBeGreaterThan(0)

    expect(heard[0]).toEqual({ ends: [{ id, ...end, runMs: expect.any(Number) }], answers: ['ok'] })
  })

  it('gets each job of a batch in one call', async () => {
    const { heard, middleware } = hearing()
    const task = defineTask({
      name: 'rows',
      batch: { size: 10 },
      retry: { max: 0 },
      run: async (_: readonly number[], { fail }) => fail(1, new Error('bad row')),
    })
    const mill = testMill({ tasks: [task], middleware: [middleware] })
    await mill.enqueueMany(task, [1, 2, 3])
    await mill.worker().start()
    await expect.poll(() => heard.length).toBe(1)

    expect(heard[0]!.ends.map(({ kind }) => kind)).toEqual(['completed', 'failed', 'completed'])
    expect(heard[0]!.answers).toEqual(['ok', 'ok', 'ok'])
  })

  it('causes no harm if it throws, which is reported', async () => {
    const task = scriptedTask()
    const settle = () => {
      throw new Error('not mine')
    }
    const mill = testMill({ tasks: [task], middleware: [{ settle }] })
    const failed = recorded(mill, 'hook.failed')
    const job = await mill.enqueue(task, { steps: ['result'], result: 7 })
    await mill.worker().start()

    expect(await job.result({ timeout: '5s' })).toBe(7)
    expect(failed).toMatchObject([{ hook: 'settle of a middleware', error: new Error('not mine') }])
  })
})

describe('the process of an isolated job', () => {
  it('ends only after the middleware has handled its end', { timeout: 60_000 }, async () => {
    const cwd = project({
      'package.json': '{"type":"module"}',
      'millrace.config.js': `
import { appendFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'

const later = async (text) => {
  await delay(300)
  appendFileSync('heard.txt', text + '\\n')
}
const long = defineTask({
  name: 'long',
  isolate: 'process',
  retry: { max: 0 },
  onExhausted: () => later('exhausted'),
  run: async () => {
    throw new Error('broken')
  },
})
export default millrace({
  store: 'sqlite:jobs.db',
  tasks: [long],
  middleware: [{ settle: async (run, [end], answers) => later(end.kind + ' ' + await answers) }],
})`,
    })
    const mill = testMill({ store: `sqlite:${cwd}/jobs.db`, tasks: [defineTask({ name: 'long' })] })
    await mill.enqueue(mill.tasks.get('long')!, undefined)
    new CommandProcess('work --json', { cwd })
    const file = join(cwd, 'heard.txt')
    const lines = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').sort() : [])

    await expect.poll(lines, { timeout: 30_000 }).toEqual(['', 'exhausted', 'failed ok'])
  })
})

const claim = (id: string) =>
  claimOf({ id, payload: '', payloads: [1, 2].map((score) => ({ score, payload: String(score) })) })
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
