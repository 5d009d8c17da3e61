/** Tasks: their defaults, and that every mistake in a definition is told at once with its place. */

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { nameClashes, Registry } from '#src/core/registry.js'
import { isTask } from '#src/core/task/any-task.js'
import { defineOrderedTask } from '#src/core/task/ordered-task.js'
import { defineSignal } from '#src/core/task/signal.js'
import { defineTask } from '#src/core/task/task.js'
import type { Duration } from '#src/core/values/duration.js'
import { issuesOf } from '../../issues-of.js'

/** The issues of a definition that is refused, as `path: message`. */
const mistakes = (options: unknown) => issuesOf(() => defineTask(options as { name: string }))

const signal = defineSignal({ name: 'approved' })

describe('a task with a name alone', () => {
  it('has the documented defaults', () => {
    const task = defineTask({ name: 'blank' })

    expect(task).toMatchObject({ name: 'blank', queue: 'default', timeLimitMs: 60_000, aliases: [], retry: { max: 4 } })
    expect(task.retry.backoff(3, () => 1 - 2 ** -53)).toBe(240_000)
    expect(task.retry.when(new Error())).toBe(true)
    expect([task.input, task.run, task.group, task.shouldRun, task.onExhausted]).toEqual(new Array(5).fill(undefined))
    expect(isTask(task)).toBe(true)
  })
})

describe('a task with everything', () => {
  it('keeps what it was given', () => {
    const given = {
      name: 'full',
      queue: 'crawl',
      input: z.object({ url: z.string() }),
      run: async () => 5,
      timeLimit: '1h30m',
      retry: { max: 0, backoff: () => 7, when: () => false },
      group: (page: { url: string }) => page.url,
      shouldRun: () => true,
      onExhausted: () => {},
      aliases: ['old'],
    } as const
    const task = defineTask(given)

    expect(task).toMatchObject({ name: 'full', queue: 'crawl', timeLimitMs: 5_400_000, aliases: ['old'] })
    expect(task.retry).toEqual(given.retry)
    expect([task.input, task.run, task.group, task.shouldRun, task.onExhausted]).toEqual([
      given.input,
      given.run,
      given.group,
      given.shouldRun,
      given.onExhausted,
    ])
  })
})

describe('handle', () => {
  it('attaches the handler once', () => {
    const task = defineTask({ name: 'later' })
    const run = () => 1

    expect(task.handle(run)).toBe(task)
    expect(task.run).toBe(run)
    expect(() => task.handle(run)).toThrow(/task 'later' is not valid:\n {2}handle: the task has a handler already/)
  })

  it('refuses anything but a function', () => {
    expect(() => defineTask({ name: 'later' }).handle('run' as unknown as () => void)).toThrow(
      /handle: must be given a function/,
    )
  })
})

describe('a wrong definition', () => {
  const name = 'x'
  const form = "must be a duration such as '500ms', '30s', '5m', '1h30m' or '3d', or a whole number of milliseconds"
  const backoffForm =
    'retry.backoff: must be a function that gives ms: `exponential()`, or `() => 30_000` for 30 s each time'
  const nameForm = 'must be 1 to 200 characters without control characters'
  const queueForm = 'must be 1 to 80 characters of A-Z a-z 0-9 . _ -, the first a letter or digit'
  const table: [unknown, string | RegExp][] = [
    [{}, 'name: is missing'],
    [{ name: '' }, `name: ${nameForm}; got ""`],
    [{ name: 5 }, `name: ${nameForm}; got 5`],
    [{ name, queue: 'a/b' }, `queue: ${queueForm}; got "a/b"`],
    [{ name, input: {} }, 'input: must be a Standard Schema (Zod, Valibot, ArkType …); got [object Object]'],
    [{ name, run: 'run' }, 'run: must be a function; got "run"'],
    [{ name, timeLimit: 'soon' }, `timeLimit: ${form}; got "soon"`],
    [{ name, timeLimit: 0 }, 'timeLimit: must be at least 1 ms; got 0'],
    [{ name, timeLimit: Number.NaN }, `timeLimit: ${form}; got NaN`],
    [{ name, retry: 3 }, 'retry: must be an object, with max, backoff, when; got 3'],
    [{ name, retry: { max: -1 } }, 'retry.max: must be a whole number from 0 to 1000000; got -1'],
    [{ name, retry: { max: 1.5 } }, 'retry.max: must be a whole number from 0 to 1000000; got 1.5'],
    [{ name, retry: { max: Infinity } }, 'retry.max: must be a whole number from 0 to 1000000; got Infinity'],
    [{ name, retry: { backoff: '5m' } }, `${backoffForm}; got "5m"`],
    [{ name, retry: { backoff: 30_000 } }, `${backoffForm}; got 30000`],
    [{ name, retry: { backoff: 'exponential' } }, `${backoffForm}; got "exponential"`],
    [{ name, retry: { backoff: { type: 'fixed' } } }, `${backoffForm}; got [object Object]`],
    [{ name, retry: { when: true } }, 'retry.when: must be a function; got true'],
    [{ name, retry: { times: 3 } }, 'retry.times: is not an option; check its spelling: there are max, backoff, when'],
    [{ name, group: 'host' }, 'group: must be a function; got "host"'],
    [{ name, shouldRun: 1n }, 'shouldRun: must be a function; got 1n'],
    [{ name, onExhausted: Symbol('s') }, 'onExhausted: must be a function; got Symbol(s)'],
    [{ name, onDead: () => {} }, /^onDead: must be a task that takes a Death, made by defineTask\(\); got /],
    [
      { name, onDead: 'go-on' },
      'onDead: must be a task that takes a Death, made by defineTask(); a set of `joins` takes that word: many(task, { onDead: \'go-on\' }); got "go-on"',
    ],
    [{ name, signals: ['approved'] }, 'signals.0: must be a signal of `defineSignal()`; got "approved"'],
    [{ name, signals: [signal, signal] }, "signals: has two of the name 'approved': a job gets each name once"],
    [
      { name, signals: [signal], batch: { size: 2 } },
      'signals: cannot be together with batch, whose jobs wait for no signals',
    ],
    [{ name, batch: {} }, 'batch.size: is missing'],
    [{ name, batch: { size: 0 } }, 'batch.size: must be a whole number from 1 to 1000; got 0'],
    [{ name, batch: { size: 2, wait: '2m' } }, 'batch.wait: must be at most 1m; got "2m"'],
    [
      { name, batch: { size: 2 }, isolate: 'process' },
      "batch: cannot be together with isolate: 'process', which runs one job in each",
    ],
    [{ name, aliases: 'old' }, 'aliases: must be a list; got "old"'],
    [{ name, aliases: ['old', ''] }, `aliases.1: ${nameForm}; got ""`],
    [
      { name, timelimit: '5m' },
      'timelimit: is not an option; check its spelling: there are name, queue, input, timeLimit, slowAfter, aliases, isolate, module, env, maxHeap, onSupervisorLoss, batch, joins, run, retry, group, expiresIn, idempotency, shouldRun, onExhausted, onDead, signals. Probably `timeLimit` is meant',
    ],
    [undefined, '(options): must be an object; got undefined'],
    [null, '(options): must be an object; got null'],
    ['send-email', '(options): must be an object; got "send-email"'],
  ]

  it.each(table)('%o is refused with its path', (options, message) => {
    expect(mistakes(options)).toEqual([typeof message === 'string' ? message : expect.stringMatching(message)])
  })

  it('refuses a task for onDead that is ordered or waits for others', () => {
    const one = defineTask({ name: 'one' })
    expect(mistakes({ name, onDead: defineOrderedTask({ name: 'merging' }) })).toEqual([
      'onDead: must not be an ordered task, whose payloads merge: let the handler of a plain task enqueue it',
    ])
    expect(mistakes({ name, onDead: defineTask({ name: 'joining', joins: { one } }) })).toEqual([
      'onDead: must not be a task with `joins`, whose jobs wait for others: let the handler of a plain task enqueue it',
    ])
    expect(mistakes({ name, onDead: one })).toEqual([])
  })

  it('reports every mistake at once', () => {
    const found = mistakes({ name: 5, queue: '', timeLimit: 'x', retry: { max: 'y', tries: 1 }, foo: 1, bar: 2 })

    expect(found.map((line) => line.split(':')[0])).toEqual([
      'name',
      'queue',
      'timeLimit',
      'retry.max',
      'retry.tries',
      'foo',
      'bar',
    ])
  })

  it('is named in the message', () => {
    expect(() => defineTask({ name: 'send-email', timeLimit: 'x' as Duration })).toThrow(
      /^task 'send-email' is not valid:\n {2}timeL/,
    )
  })
})

describe('the registry', () => {
  const email = defineTask({ name: 'email', aliases: ['mail', 'email'] })
  const crawl = defineTask({ name: 'crawl' })

  it('finds a task by its name and by its former names', () => {
    const registry = new Registry([email, crawl], [])

    expect(registry.find('mail')).toBe(email)
    expect(registry.task('crawl')).toBe(crawl)
    expect(registry.find('gone')).toBeUndefined()
  })

  it('fails for an unknown name with the list of known ones', () => {
    const registry = new Registry([email, crawl], [])

    expect(() => registry.task('gone')).toThrow(/task 'gone' is not declared.*declared are: email, crawl\./)
    expect(() => registry.queue('gone')).toThrow(/queue 'gone' is not declared.*declared are: none\./)
  })

  it('reports names that two tasks claim, and none that one task has twice', () => {
    const other = defineTask({ name: 'mail' })

    expect(nameClashes([email, crawl])).toEqual([])
    expect(nameClashes([email, crawl, other])).toEqual([
      { path: 'tasks', message: "'mail' names two tasks: 'email' and 'mail'; each needs names of its own" },
    ])
  })
})

const encode = (options: object = {}) => defineTask({ name: 'encode', isolate: 'process', ...options })

describe('an isolated task', () => {
  it('has defaults of its own: no retry, and a time limit', () => {
    const { isolation, retry, timeLimitMs } = encode()
    expect(isolation).toEqual({ module: undefined, env: undefined, maxHeapBytes: undefined, onSupervisorLoss: 'exit' })
    expect([retry.max, timeLimitMs]).toEqual([0, 60_000])
  })

  it('is retried if it says so', () => {
    expect(encode({ retry: { max: 2 } }).retry.max).toBe(2)
  })

  it.each([
    ['60s', 'exit'],
    ['9m59s', 'exit'],
    ['10m', 'detach'],
    ['3d', 'detach'],
    ['none', 'detach'],
  ])('with a time limit of %s reacts to the loss of its worker by: %s', (timeLimit, onSupervisorLoss) => {
    expect(encode({ timeLimit }).isolation?.onSupervisorLoss).toBe(onSupervisorLoss)
  })

  it('reacts to the loss of its worker as configured', () => {
    expect(encode({ timeLimit: '3d', onSupervisorLoss: 'exit' }).isolation?.onSupervisorLoss).toBe('exit')
    expect(encode({ onSupervisorLoss: 'detach' }).isolation?.onSupervisorLoss).toBe('detach')
  })

  it('may run without a limit, and can set its memory and its variables', () => {
    const { isolation, timeLimitMs } = encode({
      timeLimit: 'none',
      maxHeap: '512MB',
      env: ['API_KEY'],
      module: import.meta.url,
    })
    expect(timeLimitMs).toBe(Number.POSITIVE_INFINITY)
    expect(isolation).toMatchObject({ maxHeapBytes: 536_870_912, env: ['API_KEY'], module: import.meta.url })
  })

  it.each([
    [{ isolate: 'thread' }, /isolate: must be 'process'/],
    [{ module: './tasks.js' }, /module: must be a file URL: `import.meta.url`/],
    [{ module: import.meta }, /module: must be a file URL: `import.meta.url`/],
    [{ env: 'A' }, /env: must be a list of names of environment variables, as in \['DATABASE_URL'\]/],
    [{ env: ['A=B'] }, /env.0: must be the name of an environment variable/],
    [{ maxHeap: 'much' }, /maxHeap: must be a size such as '512MB'/],
    [{ maxHeap: 1_000 }, /maxHeap: must be at least 16 MB/],
    [{ onSupervisorLoss: 'stay' }, /onSupervisorLoss: must be 'detach' or 'exit'/],
    [{ timeLimit: 'never' }, /timeLimit: must be a duration /],
  ])('refuses %o', (options, message) => {
    expect(() => encode(options)).toThrow(message)
  })
})

describe('a task that runs in its worker', () => {
  it('has no isolation, and four retries', () => {
    const { isolation, retry } = defineTask({ name: 'send' })
    expect([isolation, retry.max]).toEqual([undefined, 4])
  })

  it('refuses options that need a process, all at once', () => {
    const options = { name: 'send', timeLimit: 'none', env: ['A'], maxHeap: '64MB', onSupervisorLoss: 'exit' } as const
    expect(() => defineTask(options)).toThrow(
      /timeLimit: must be a duration: only a process can be ended .*\n {2}env: needs isolate: 'process'\n {2}maxHeap: needs .*\n {2}onSupervisorLoss: needs/,
    )
  })
})
