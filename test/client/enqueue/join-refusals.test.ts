/** What joins and flows refuse: each wrong use by its error, with nothing stored. */

import { defineOrderedTask, defineTask, type Mill, many } from 'millrace'
import { testMill } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { testMillOn } from '../../test-mill.js'

const rates = defineTask({ name: 'rates', input: z.object({ date: z.string() }), run: async () => ({ eur: 1 }) })
const sum = defineTask({ name: 'sum', queue: 'sums', input: z.number(), run: async (n) => n })
const batched = defineTask({ name: 'batched', queue: 'batches', batch: { size: 3 }, run: async (all: number[]) => all })
const order = defineOrderedTask({ name: 'order', id: () => 'a', run: async () => {} })
const report = defineTask({
  name: 'report',
  queue: 'reports',
  joins: { rates, sales: many(sum) },
  run: async (_: { month: string }) => 'done',
})
const holding = defineTask({ name: 'holding', joins: { sales: many(sum, { onDead: 'hold' }) }, run: async () => {} })
const upper = defineTask({ name: 'upper', joins: { report }, run: async () => {} })
const tasks = [rates, sum, batched, order, report, holding, upper]
const queues = { small: { maxPending: 2 }, sums: { maxPending: 100_000 } }
const after = { rates: { date: '' }, sales: [1, 2] }
const input = { month: '' }

/** Closed when the test is over. */
function made() {
  const mill = testMill({ tasks, queues })
  onTestFinished(() => mill.close())
  return mill
}

async function stored(mill: Mill): Promise<number> {
  const counts = await mill.depths()
  return counts.reduce((all, { ready, scheduled, waiting, dead }) => all + ready + scheduled + waiting + dead, 0)
}

/** Calls as a program without types makes them. */
type Wild = (...args: unknown[]) => never
const enqueue = (mill: Mill) => mill.enqueue.bind(mill) as unknown as (...args: unknown[]) => Promise<unknown>

const definitions: [string, object, RegExp][] = [
  ['joins that are no object', { joins: 5 }, /joins: must be an object/],
  [
    'joins that are a list',
    { joins: [sum] },
    /joins: must be an object that names each set, as \{ rates: fetchRates \}/,
  ],
  ['no sets', { joins: {} }, /joins: must have at least one set: a task, or many\(task\)/],
  ['a name of a set with a blank', { joins: { 'a b': sum } }, /must be a letter, then at most 63 letters, digits/],
  [
    'a set that is no task',
    { joins: { a: 'sum' } },
    /joins\.a: must be a task, many\(task\) or \{ task, onDead \}; got "sum"$/,
  ],
  ['a set that is undefined', { joins: { a: undefined } }, /joins\.a: must be a task.*is it exported under that name/],
  [
    'an ordered member',
    { joins: { a: order } },
    /joins\.a: must not be an ordered task: its jobs gather payloads.*a plain task$/,
  ],
  [
    'many ordered members',
    { joins: { a: (many as Wild)(order) } },
    /joins\.a\.task: must not be an ordered task.*a plain task$/,
  ],
  ['many of nothing', { joins: { a: (many as Wild)(undefined) } }, /joins\.a\.task: must be a task/],
  ['an unknown word', { joins: { a: (many as Wild)(sum, { onDead: 'wait' }) } }, /must be 'fail', 'go-on' or 'hold'/],
  ['an unknown option', { joins: { a: (many as Wild)(sum, { ondead: 'fail' }) } }, /Probably `onDead` is meant/],
  ['a flag that is no flag', { joins: { a: (many as Wild)(sum, { cancelRest: 1 }) } }, /joins\.a\.cancelRest/],
  ['a batch task as join', { batch: { size: 2 }, joins: { a: sum } }, /joins: cannot be together with batch/],
]

it.each(definitions)('a definition with %s is refused', (_, options, message) => {
  expect(() => defineTask({ name: 'bad', ...options } as never)).toThrow(message)
  expect(() => defineTask({ name: 'bad', ...options } as never)).toThrow(
    expect.objectContaining({ code: 'config-invalid', page: 'millrace/docs/troubleshooting/config-invalid.md' }),
  )
})

it('an ordered task cannot wait for others', () => {
  expect(() => defineOrderedTask({ name: 'bad', joins: { sum } } as never)).toThrow(
    /joins: is not an option.*It is an option of a plain task/,
  )
})

const enqueues: [string, readonly unknown[], RegExp][] = [
  ['no options', [report, input], /it waits for other jobs, whose inputs must be given: after: \{ rates, sales \}/],
  ['no after', [report, input, { priority: 1 }], /whose inputs must be given: after/],
  ['options that are no object', [report, input, 5], /options must be an object; got 5/],
  [
    'an after that is no object',
    [report, input, { after: 'all' }],
    /after must be an object with the inputs of rates, sales/,
  ],
  ['an after that is a list', [report, input, { after: [] }], /after must be an object with the inputs of rates/],
  ['a set that only its prototype has', [report, input, { after: Object.create(after) }], /after\.rates is missing/],
  [
    'an after that is null',
    [report, input, { after: null }],
    /after must be an object with the inputs of .*; got null/,
  ],
  ['no list for many', [report, input, { after: { ...after, sales: undefined } }], /after\.sales must be a list/],
  [
    'a member that the schema of its task refuses at the end of a long list',
    [report, input, { after: { ...after, sales: [...Array(900).fill(1), 'x'] } }],
    /^member 900 of set 'sales'/,
  ],
  ['a missing set', [report, input, { after: { rates: { date: '' } } }], /after\.sales is missing: .*are rates, sales/],
  ['a set too many', [report, input, { after: { ...after, more: [] } }], /after\.more is no set of its joins/],
  [
    'many that are no list',
    [report, input, { after: { ...after, sales: 3 } }],
    /after\.sales must be a list, an iterable/,
  ],
  ['many that are a text', [report, input, { after: { ...after, sales: '12' } }], /after\.sales must be a list/],
  [
    'a wrong input of one of many',
    [report, input, { after: { ...after, sales: [1, '2', 3] } }],
    /^member 1 of set 'sales': the input of a job of task 'sum'/,
  ],
  [
    'a wrong input of the only member',
    [report, input, { after: { ...after, rates: {} } }],
    /^the member of set 'rates': the input of a job of task 'rates'/,
  ],
  ['a wait of no form', [report, input, { after, within: 'soon' }], /within must be .*; got "soon"/],
  ['a wait of 0', [report, input, { after, within: 0 }], /within must be .*above 0; got 0/],
  ['a wait that is too long', [report, input, { after, within: '40000d' }], /within of .* is longer than/],
  ['a time to seal of no form', [report, input, { after, sealWithin: {} }], /sealWithin must be/],
  [
    'a set that holds, without a bound',
    [holding, undefined, { after: { sales: [] } }],
    /set 'sales' holds.*give `within`/,
  ],
  [
    'a member that waits itself',
    [upper, undefined, { after: { report: input } }],
    /waits for jobs itself.*mill\.flow\(\)/,
  ],
  ['ifWaiting', [report, input, { after, id: 'a', ifWaiting: 'replace' }], /nothing takes its place/],
  ['atMost', [report, input, { after, atMost: '1m' }], /nothing takes its place/],
  ['an unknown option', [report, input, { after, widthin: '1d' }], /'widthin' is not an option of enqueue/],
  ['an ordered queue', [report, input, { after, queue: 'order' }], /queue 'order' is ordered/],
  ['a queue there is not', [report, input, { after, queue: 'none' }], /queue 'none' is not declared/],
  ['an id of no form', [report, input, { after, id: 7 }], /id must be/],
  ['after on a task without joins', [sum, 1, { after: {} }], /'after' is not an option.*for a task with joins/],
  ['within on a task without joins', [sum, 1, { within: '1d' }], /'within' is not an option.*for a task with joins/],
]

describe('nothing is stored of an enqueue with', () => {
  it.each(enqueues)('%s', async (_, args, message) => {
    const mill = made()
    await expect(enqueue(mill)(...args)).rejects.toThrow(message)
    await expect(enqueue(mill)(...args)).rejects.toMatchObject({
      code: expect.stringMatching(/^job-invalid|queue-unknown$/),
    })

    expect(await stored(mill)).toBe(0)
  })

  it('more jobs than a queue has room for', async () => {
    const mill = made()
    await expect(mill.enqueue(report, input, { after, queue: 'small', id: 'a' })).resolves.toBeDefined()
    await mill.enqueue(report, input, { after: { ...after, sales: [] }, queue: 'small' })
    const before = await stored(mill)
    await expect(mill.enqueue(report, input, { after, queue: 'small' })).rejects.toMatchObject({ code: 'queue-full' })

    expect(await stored(mill)).toBe(before)
  })
})

const elsewhere: [string, (mill: Mill) => unknown][] = [
  ['enqueueMany', (mill) => mill.enqueueMany(report, [input])],
  ['enqueueMany of several tasks', (mill) => (mill.enqueueMany as unknown as Wild).call(mill, [[report, input]])],
  ['a schedule', (mill) => mill.schedules.set('nightly', { every: '1h', task: report, input })],
]
it.each(elsewhere)('%s refuses a task with joins, and says who takes it', async (_, call) => {
  const mill = made()
  const error = await Promise.resolve(call(mill)).catch((thrown: Error) => thrown)

  expect((error as Error).message).toMatch(
    /it waits for other jobs, .*Only mill\.enqueue\(\), ctx\.enqueue\(\) and mill\.flow\(\)/,
  )
  expect(await stored(mill)).toBe(0)
})

it('a store without joins refuses them, with a remedy', async () => {
  const store = Object.assign(new MemoryStore(), { joins: undefined })
  const mill = testMillOn(store, { tasks })

  for (const call of [() => mill.enqueue(report, input, { after }), () => mill.flow((f) => f.job(sum, 1))])
    await expect(call()).rejects.toMatchObject({
      code: 'unsupported-by-store',
      message: expect.stringMatching(/jobs that wait for others\. Use another store/),
    })
})

type Build = Parameters<Mill['flow']>[0]
type AnyFlow = { job: (...args: unknown[]) => never; jobs: (...args: unknown[]) => never }
/** Adds a report that waits for these jobs. */
const withSales = (f: AnyFlow, sales: unknown, rate: unknown = f.job(rates, { date: '' })) =>
  f.job(report, input, { after: { rates: rate, sales } })
const flows: [string, string | number | ((f: AnyFlow) => unknown), RegExp][] = [
  ['no function', 5, /mill\.flow\(\) expects a function that adds jobs; got 5/],
  ['an async function', async () => {}, /must not be async/],
  ['no job', () => {}, /a flow needs a job that waits for others/],
  ['no join', (f: AnyFlow) => f.job(sum, 1), /a flow needs a job that waits for others.*mill\.enqueueMany\(\)/],
  ['no task', (f: AnyFlow) => f.job('sum', 1), /f\.job\(\) expects a task/],
  ['an ordered task', (f: AnyFlow) => f.job(order, {}), /an ordered task is no part of a flow/],
  ['many jobs of a join', (f: AnyFlow) => f.jobs(report, [input]), /takes no task with `joins`/],
  ['many jobs with an id', (f: AnyFlow) => f.jobs(sum, [1], { id: 'a' }), /takes no id/],
  ['inputs that are no list', (f: AnyFlow) => f.jobs(sum, 1), /expects a list or an iterable of inputs; got 1/],
  ['a join without after', (f: AnyFlow) => f.job(report, input), /whose inputs must be given: after/],
  ['after for a task without joins', (f: AnyFlow) => f.job(sum, 1, { after: {} }), /are for a task with `joins`/],
  ['sealWithin', (f: AnyFlow) => f.job(report, input, { after: {}, sealWithin: 1 }), /a flow is stored in one step/],
  [
    'an input in the place of a job',
    (f: AnyFlow) => f.job(report, input, { after: { rates: { date: '' }, sales: f.jobs(sum, []) } }),
    /after\.rates must be a job of f\.job\(\); got/,
  ],
  [
    'a job in the place of many',
    (f: AnyFlow) => f.job(report, input, { after: { rates: f.job(rates, { date: '' }), sales: f.job(sum, 1) } }),
    /after\.sales must be a list of f\.jobs\(\), or an array of jobs of f\.job\(\); got a job of a flow/,
  ],
  [
    'many in the place of a job',
    (f) => withSales(f, [], f.jobs(rates, [])),
    /after\.rates must be a job of f\.job\(\); got a list of f\.jobs\(\)/,
  ],
  [
    'a list in the place of a job',
    (f) => withSales(f, [], [f.job(rates, { date: '' })]),
    /after\.rates must be a job of f\.job\(\); got a list/,
  ],
  [
    'an after that is a list',
    (f: AnyFlow) => f.job(report, input, { after: [f.job(sum, 1)] }),
    /after must be an object with the jobs for rates, sales; got a list/,
  ],
  [
    'an after that is a job',
    (f: AnyFlow) => f.job(report, input, { after: f.job(sum, 1) }),
    /after must be an object with the jobs for rates, sales; got a job of a flow/,
  ],
  [
    'a set too many',
    (f: AnyFlow) => f.job(report, input, { after: { more: f.job(sum, 1) } }),
    /after\.more is no set of its joins, which are rates, sales/,
  ],
  [
    'within for a task without joins',
    (f: AnyFlow) => f.job(sum, 1, { within: '1d' }),
    /define it with `joins: \{ name: task \}`/,
  ],
  [
    'a wait of no form',
    (f: AnyFlow) => f.job(holding, undefined, { after: { sales: f.jobs(sum, [1]) }, within: 'soon' }),
    /within must be .*; got "soon"/,
  ],
  [
    'ifWaiting for a join',
    (f: AnyFlow) => f.job(report, input, { after: {}, ifWaiting: 'replace' }),
    /nothing takes its place/,
  ],
  [
    'an input in a list',
    (f) => withSales(f, [f.job(sum, 1), 2]),
    /after\.sales\[1\] must be a job of f\.job\(\); got 2/,
  ],
  [
    'a list of f.jobs() in an array',
    (f) => withSales(f, [f.jobs(sum, [1])]),
    /after\.sales\[0\] must be a job of f\.job\(\); got a list of f\.jobs\(\)/,
  ],
  [
    'a job of another task in a list',
    (f) => withSales(f, [f.job(sum, 1), f.job(rates, { date: '' })]),
    /after\.sales\[1\] must be of task 'sum'; got a job of task 'rates'/,
  ],
  [
    'many jobs of another task',
    (f) => withSales(f, f.jobs(rates, [])),
    /after\.sales must be of task 'sum'; got a job of task 'rates'/,
  ],
  [
    'a job with an id of its own in a list',
    (f) => withSales(f, [f.job(sum, 1, { id: 'mine' })]),
    /after\.sales\[0\] has an id of its own.*give it none/,
  ],
  [
    'a list of jobs of two queues',
    (f) => withSales(f, [f.job(sum, 1), f.job(sum, 2, { queue: 'small' })]),
    /after\.sales\[1\] is in queue 'small', and those before it in 'sums'/,
  ],
  [
    'a job twice in a list',
    (f) => {
      const one = f.job(sum, 1)
      withSales(f, [one, one])
    },
    /after\.sales\[1\] is in the list twice/,
  ],
  [
    'lists that have a job at different places',
    (f) => {
      const [one, two, three] = [f.job(sum, 1), f.job(sum, 2), f.job(sum, 3)]
      withSales(f, [one, two])
      withSales(f, [three, two])
    },
    /after\.sales\[1\] is job 1 of the flow, and a list before had its jobs in another order.*give the same list/,
  ],
  [
    'lists that go on with different jobs',
    (f) => {
      const [one, two, three] = [f.job(sum, 1), f.job(sum, 2), f.job(sum, 3)]
      withSales(f, [one, two])
      withSales(f, [one, three])
    },
    /after\.sales\[1\] is job 2 of the flow, and a list before/,
  ],
  [
    'a job of another task',
    (f: AnyFlow) => f.job(report, input, { after: { rates: f.job(sum, 1), sales: f.jobs(sum, []) } }),
    /after\.rates must be of task 'rates'; got a job of task 'sum'/,
  ],
  [
    'a missing set',
    (f: AnyFlow) => f.job(report, input, { after: { rates: f.job(rates, { date: '' }) } }),
    /after\.sales is missing/,
  ],
  [
    'a set that holds, without a bound',
    (f: AnyFlow) => f.job(holding, undefined, { after: { sales: f.jobs(sum, [1]) } }),
    /give `within`/,
  ],
  [
    'a wrong input',
    (f: AnyFlow) => f.job(report, input, { after: { rates: f.job(rates, {}), sales: f.jobs(sum, []) } }),
    /^job 0 of the flow: the input of a job of task 'rates'/,
  ],
  [
    'more than 1,000 jobs',
    (f: AnyFlow) =>
      f.jobs(
        sum,
        Array.from({ length: 1_001 }, (_, n) => n),
      ),
    /a flow has at most 1000 jobs\. For more, enqueue a join by mill\.enqueue\(\)/,
  ],
  [
    'a job that 65 wait for',
    (f: AnyFlow) => {
      const [rate, sales] = [f.job(rates, { date: '' }), f.jobs(sum, [])]
      for (let n = 0; n < 65; n += 1) f.job(report, input, { after: { rates: rate, sales } })
    },
    /job 0 of the flow is waited for by more than 64 jobs/,
  ],
]

describe('nothing is stored of a flow with', () => {
  it.each(flows)('%s', async (_, build, message) => {
    const mill = made()
    await expect(mill.flow(build as unknown as Build)).rejects.toThrow(message)
    await expect(mill.flow(build as unknown as Build)).rejects.toMatchObject({
      code: expect.stringMatching(/^job-invalid|argument-invalid$/),
    })

    expect(await stored(mill)).toBe(0)
  })

  it('a job of another flow', async () => {
    const mill = made()
    let foreign: unknown
    await mill.flow((f) => {
      foreign = f.job(rates, { date: '' })
      f.job(report, input, { after: { rates: foreign as never, sales: f.jobs(sum, []) } })
    })
    const before = await stored(mill)
    const build: Build = (f) => f.job(report, input, { after: { rates: foreign as never, sales: f.jobs(sum, []) } })

    await expect(mill.flow(build)).rejects.toThrow(/after\.rates is of another flow: add it to this one/)
    expect(await stored(mill)).toBe(before)
  })

  it.each([
    ['in a list', (f: AnyFlow, foreign: unknown) => withSales(f, [foreign]), /after\.sales\[0\] is of another flow/],
    ['many', (f: AnyFlow, _: unknown, many: unknown) => withSales(f, many), /after\.sales is of another flow/],
  ] as const)('jobs of another flow, %s', async (_, build, message) => {
    const mill = made()
    const foreign: unknown[] = []
    await mill.flow((f) => {
      const sales = f.jobs(sum, [])
      foreign.push(f.job(sum, 1), sales)
      f.job(report, input, { after: { rates: f.job(rates, { date: '' }), sales } })
    })
    const before = await stored(mill)

    await expect(mill.flow(((f: AnyFlow) => build(f, ...(foreign as [unknown, unknown]))) as never)).rejects.toThrow(
      message,
    )
    expect(await stored(mill)).toBe(before)
  })

  it('the handle of a job in the place of one', async () => {
    const mill = made()
    const job = await mill.enqueue(sum, 1)
    const handles: [object, RegExp][] = [
      [
        { ...after, sales: [1, job] },
        /after\.sales\[1\] takes what new jobs are given as input; got the handle of a stored job/,
      ],
      [
        { ...after, sales: job },
        /after\.sales takes .*; got the handle of a stored job.*build a graph of new jobs by mill\.flow\(\)/,
      ],
      [{ ...after, rates: job }, /after\.rates takes .*; got the handle of a stored job/],
      [job, /after takes .*; got the handle of a stored job/],
    ]
    for (const [given, message] of handles)
      await expect(enqueue(mill)(report, input, { after: given })).rejects.toThrow(message)
    await expect(mill.flow(((f: AnyFlow) => withSales(f, [job])) as never)).rejects.toThrow(
      /after\.sales\[0\] must be a job of f\.job\(\); got the handle of a stored job/,
    )

    expect(await stored(mill)).toBe(1)
  })

  it('a job whose id is there already', async () => {
    const mill = made()
    await mill.enqueue(rates, { date: '' }, { id: 'today' })
    const build: Build = (f) =>
      f.job(report, input, { after: { rates: f.job(rates, { date: '' }, { id: 'today' }), sales: f.jobs(sum, [1]) } })

    await expect(mill.flow(build)).rejects.toThrow(
      /job of task 'rates': a job with the id 'today' is in queue 'default' already, and nobody can wait/,
    )
    expect(await stored(mill)).toBe(1)
  })
})

it('a handler that waits for a job of its own queue is refused, and another queue may be waited for', async () => {
  const child = defineTask({ name: 'child', run: async () => 'grown' })
  const parent = defineTask({
    name: 'parent',
    retry: { max: 0 },
    run: async (_: object, ctx) => (await ctx.enqueue(child)).result(),
  })
  const mill = testMill({ tasks: [child, parent] })
  onTestFinished(() => mill.close())
  await mill.enqueue(parent, {})
  const [ran] = await mill.drain()

  expect(ran!.error).toMatchObject({ code: 'argument-invalid' })
  expect((ran!.error as Error).message).toMatch(/must not wait for the result of job '.*' of queue 'default'.*`joins`/)
})
