/** The shapes of spans: names, kinds, attributes, parents, links and status, on each store. */

import { trace } from '@opentelemetry/api'
import { defineOrderedTask, defineTask, many, snooze } from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type RunMessage, runAttributes } from '#src/telemetry/span-attributes.js'
import { scriptedTask } from '../scripted-task.js'
import { idOf, inSpan, SpanScene, shown, tracedStores, traceOf } from './span-scene.js'

const settled = { timeout: '10s' } as const
const again = { max: 1, backoff: () => 0 }
const messaging = (operation: string, queue = 'default') => ({
  'messaging.system': 'millrace',
  'messaging.operation.name': operation,
  'messaging.operation.type': operation,
  'messaging.destination.name': queue,
})

describe.each(tracedStores)('the spans on %s', { timeout: 60_000 }, (kind) => {
  it('for an enqueue, its run and its settle are one trace with that of the request', async () => {
    const mail = defineTask({
      name: 'mail',
      async run() {
        trace.getTracer('mine').startSpan('smtp').end()
        return 'sent'
      },
    })
    const of = await SpanScene.on(kind, { tasks: [mail] })
    await of.mill.worker().start()
    let id = ''
    const request = await inSpan(async () => {
      id = (await of.mill.enqueue(mail, undefined, { group: 'acme' })).id
    })
    const [send, process, settle, smtp] = [
      await of.span('send default'),
      await of.span('process default'),
      await of.span('settle default'),
      await of.span('smtp'),
    ]

    expect(shown(send)).toMatchObject({
      kind: 'PRODUCER',
      parent: request.spanId,
      status: { code: 0 },
      attributes: {
        ...messaging('send'),
        ...{
          'messaging.message.id': id,
          'millrace.task': 'mail',
          'millrace.group': 'acme',
          'millrace.outcome': 'added',
        },
      },
    })
    expect(shown(process)).toMatchObject({
      kind: 'CONSUMER',
      parent: idOf(send),
      links: [[id, idOf(send)]],
      status: { code: 0 },
      attributes: {
        ...messaging('process'),
        ...{ 'messaging.message.id': id, 'millrace.task': 'mail', 'millrace.group': 'acme' },
        ...{ 'millrace.attempt': 1, 'millrace.discipline': 'plain', 'millrace.outcome': 'completed' },
        'millrace.lag_ms': expect.any(Number),
      },
    })
    expect(shown(settle)).toMatchObject({
      kind: 'CLIENT',
      parent: idOf(process),
      attributes: { ...messaging('settle'), 'messaging.message.id': id, 'millrace.outcome': 'completed' },
    })
    expect(shown(smtp).parent).toBe(idOf(process))
    expect(new Set(of.all.map(traceOf))).toEqual(new Set([request.traceId]))
  })

  it('for a retry are new, with the earlier error, and linked to the same enqueue', async () => {
    const flaky = defineTask({
      name: 'flaky',
      retry: again,
      run: async (_, { job }) => {
        if (job.attempt === 1) throw new RangeError('too far')
      },
    })
    const of = await SpanScene.on(kind, { tasks: [flaky] })
    await of.mill.worker().start()
    const job = await of.mill.enqueue(flaky, undefined)
    await job.result(settled)
    const send = await of.span('send default')
    const runs = (await of.spans('process default', 2)).map(shown)

    expect(runs.map(({ attributes }) => attributes['millrace.attempt'])).toEqual([1, 2])
    expect(runs.map(({ links, parent }) => [links, parent])).toEqual(
      Array(2).fill([[[job.id, idOf(send)]], idOf(send)]),
    )
    expect(runs[0]).toMatchObject({
      status: { code: 2, message: 'too far' },
      attributes: { 'error.type': 'RangeError', 'millrace.outcome': 'failed' },
      exceptions: [['RangeError', 'too far']],
    })
    expect(runs[1]).toMatchObject({ status: { code: 0 }, exceptions: [] })
  })

  it('for ordered payloads are linked to the enqueue of each, even if equal ones have merged', async () => {
    const sync = defineOrderedTask({ name: 'sync', merge: 'distinct', run: async () => {} })
    const of = await SpanScene.on(kind, { tasks: [sync] })
    const outcomes: unknown[] = []
    for (const payload of ['a', 'b', 'a']) outcomes.push((await of.mill.enqueue(sync, payload, { id: 'one' })).outcome)
    const sends = (await of.spans('send sync', 3)).map(idOf)
    await of.mill.worker().start()
    const process = await of.span('process sync')

    expect(outcomes).toEqual(['added', 'merged', 'merged'])
    // Equal payloads are one, whatever enqueued them: the first stays.
    expect(shown(process)).toMatchObject({
      links: [
        ['one', sends[0]],
        ['one', sends[1]],
      ],
      parent: undefined,
      attributes: { 'millrace.discipline': 'ordered', 'messaging.message.id': 'one' },
    })
  })

  it('for a batch are one for all jobs, linked to each, with the errors of some', async () => {
    const rows = defineTask({
      name: 'rows',
      batch: { size: 10, wait: '50ms' },
      retry: { max: 0 },
      async run(inputs: readonly number[], { fail, enqueue }) {
        fail(1, new Error('bad row'))
        await enqueue(child, 'one', { parent: 0 })
        return inputs
      },
    })
    const child = defineTask({ name: 'child', queue: 'children' })
    const of = await SpanScene.on(kind, { tasks: [rows, child] })
    const jobs = await of.mill.enqueueMany(rows, [1, 2])
    const alone = await of.mill.enqueue(rows, 3)
    await of.mill.worker({ queues: ['default'] }).start()
    await of.mill.results([...jobs, alone], settled)
    const [many, one] = await of.spans('send default', 2)
    const process = await of.span('process default')
    const [sent, settle] = [await of.span('send children'), await of.span('settle default')]

    expect(shown(many!).attributes).toMatchObject({ 'messaging.batch.message_count': 2, 'millrace.task': 'rows' })
    expect(shown(process)).toMatchObject({
      parent: undefined,
      links: [...jobs.map(({ id }) => [id, idOf(many!)]), [alone.id, idOf(one!)]],
      attributes: { 'messaging.batch.message_count': 3, 'millrace.discipline': 'batch', 'error.type': 'Error' },
      status: { code: 2, message: 'bad row' },
    })
    expect([shown(sent).parent, shown(settle).parent]).toEqual([idOf(process), idOf(process)])
    expect(shown(settle).attributes).toMatchObject({ 'messaging.batch.message_count': 3 })
  })

  it('for a join and the jobs that it waited for are children of the one enqueue that stored them', async () => {
    const part = defineTask({ name: 'part', queue: 'parts', run: async (n: number) => n })
    const whole = defineTask({
      name: 'whole',
      joins: { parts: many(part) },
      run: async (_: object, ctx) => ctx.joined.parts.counts.completed,
    })
    const of = await SpanScene.on(kind, { tasks: [part, whole] })
    await of.mill.worker().start()
    const job = await of.mill.enqueue(whole, {}, { after: { parts: [1, 2, 3] } })
    await job.result(settled)
    const send = await of.span('send')
    const [join, members] = [await of.span('process default'), await of.spans('process parts', 3)]

    for (const span of [join, ...members]) expect(shown(span)).toMatchObject({ parent: idOf(send) })
    expect(shown(join).links).toEqual([[job.id, idOf(send)]])
    expect(members.map((span) => shown(span).links).sort()).toEqual(
      [0, 1, 2].map((n) => [[`${job.id}.parts.${n}`, idOf(send)]]),
    )
    expect(new Set(of.all.map(traceOf)).size).toBe(1)
  })

  it("are stored next to the user's meta, and visible in the job and its record", async () => {
    const mail = defineTask({ name: 'mail', run: async (_, { job }) => [job.meta, job.trace?.traceparent] })
    const of = await SpanScene.on(kind, { tasks: [mail] })
    await of.mill.worker().start()
    const job = await of.mill.enqueue(mail, undefined, { meta: { mine: 1 } })
    const send = await of.span('send default')

    const traceparent = `00-${traceOf(send)}-${idOf(send)}-01`
    expect(await job.result(settled)).toEqual([{ mine: 1 }, traceparent])
    expect(await job.record()).toMatchObject({ meta: { mine: 1 }, trace: { traceparent } })
  })
})

describe('the span of a run', () => {
  it('begins its own trace on request, and is linked to its enqueue', async () => {
    const mail = defineTask({ name: 'mail', run: async () => {} })
    const of = await SpanScene.on('memory', { tasks: [mail] }, { relation: 'link' })
    const job = await of.mill.enqueue(mail, undefined)
    // Nor does it belong to the span in which its worker was started.
    await inSpan(() => of.mill.worker().start())
    const [send, process] = [await of.span('send default'), await of.span('process default')]

    expect(shown(process)).toMatchObject({ parent: undefined, links: [[job.id, idOf(send)]] })
    expect(new Set([send, process, await of.span('request')].map(traceOf)).size).toBe(3)
  })

  it('is the child of the enqueue if all jobs of a batch came from one', async () => {
    const rows = defineTask({ name: 'rows', batch: { size: 10 }, run: async () => {} })
    const of = await SpanScene.on('memory', { tasks: [rows] })
    await of.mill.enqueueMany(rows, [1, 2, 3])
    await of.mill.worker().start()

    expect(shown(await of.span('process default')).parent).toBe(idOf(await of.span('send default')))
  })

  it('has at most 128 links', async () => {
    const sync = defineOrderedTask({ name: 'sync', maxPayloads: 200, run: async () => {} })
    const of = await SpanScene.on('memory', { tasks: [sync] })
    for (let i = 0; i < 130; i += 1) await of.mill.enqueue(sync, i, { id: 'one' })
    await of.mill.worker().start()
    const { links } = await of.span('process sync')

    expect(links).toHaveLength(128)
  })

  it.each([
    ['snooze', { code: 0 }, { 'millrace.outcome': 'released' }],
    ['bury', { code: 2, message: 'as told' }, { 'millrace.outcome': 'buried', 'error.type': 'buried' }],
    ['cancel', { code: 2, message: 'as told' }, { 'millrace.outcome': 'cancelled', 'error.type': 'cancelled' }],
    ['hang', { code: 2 }, { 'millrace.outcome': 'failed', 'error.type': 'time-limit-exceeded' }],
    ['deaf', { code: 2 }, { 'millrace.outcome': 'failed', 'error.type': 'time-limit-exceeded' }],
  ] as const)('shows how it ended: %s', async (step, status, attributes) => {
    const task = scriptedTask({ max: 0, timeLimit: '100ms' })
    const of = await SpanScene.on('memory', { tasks: [task] })
    await of.mill.enqueue(task, { steps: [step, 'ok'] })
    await of.mill.worker().start()
    await expect.poll(() => of.all.some(({ name }) => name === 'process default')).toBe(true)

    expect(shown(of.all.find(({ name }) => name === 'process default')!)).toMatchObject({ status, attributes })
  })

  it('exists for a job with an invalid input, although its handler was not called', async () => {
    let fits = true
    const mail = defineTask({ name: 'mail', input: z.custom(() => fits), run: async () => {} })
    const of = await SpanScene.on('memory', { tasks: [mail] })
    const job = await of.mill.enqueue(mail, 1)
    fits = false
    await of.mill.worker().start()

    expect(shown(await of.span('process default'))).toMatchObject({
      links: [[job.id, idOf(await of.span('send default'))]],
      attributes: { 'error.type': 'job-invalid', 'millrace.outcome': 'buried' },
      status: { code: 2 },
    })
  })

  it("has the application's attributes, and survives a function that throws", async () => {
    const mail = defineTask({ name: 'mail', run: async () => snooze('1h') })
    const of = await SpanScene.on(
      'memory',
      { tasks: [mail] },
      {
        attributes: (traced) => {
          if ('items' in traced) throw new Error('none')
          return { 'app.tenant': 'acme' }
        },
      },
    )
    await of.mill.enqueue(mail, undefined)
    await of.mill.worker().start()

    expect(shown(await of.span('process default')).attributes).toMatchObject({ 'app.tenant': 'acme' })
    expect(shown(await of.span('send default')).attributes).toMatchObject({ 'millrace.task': 'mail' })
  })
})

describe('the span of an enqueue', () => {
  it('shows that it was refused', async () => {
    const mail = defineTask({ name: 'mail' })
    const of = await SpanScene.on('memory', { tasks: [mail], queues: { default: { maxPending: 1 } } })
    await of.mill.enqueue(mail, undefined)
    await expect(of.mill.enqueue(mail, undefined)).rejects.toMatchObject({ code: 'queue-full' })
    const [, refused] = await of.spans('send default', 2)

    expect(shown(refused!)).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'queue-full' } })
  })

  it('names no queue if its jobs go into several', async () => {
    const [a, b] = [defineTask({ name: 'a', queue: 'a' }), defineTask({ name: 'b', queue: 'b' })]
    const of = await SpanScene.on('memory', { tasks: [a, b] })
    await of.mill.enqueueMany([[a], [b]])

    expect(shown(await of.span('send')).attributes).not.toHaveProperty('messaging.destination.name')
  })
})

it('the lag of a run counts from when its oldest job could begin, as the lag of its queue does', () => {
  const run = { task: defineTask({ name: 'mail', run: async () => {} }) } as unknown as Parameters<
    typeof runAttributes
  >[0]
  const message = (runAt: number, waitedUntil?: number): RunMessage => ({
    ...{ id: 'a', attempt: 1, crashes: 0, runAt: new Date(runAt), traces: [] },
    ...(waitedUntil === undefined ? {} : { waitedUntil: new Date(waitedUntil) }),
  })
  const lag = (...messages: RunMessage[]) => runAttributes(run, messages, 10_000)['millrace.lag_ms']

  expect(lag(message(4_000))).toBe(6_000)
  expect(lag(message(4_000, 9_000))).toBe(1_000)
  expect(lag(message(4_000, 9_000), message(7_000))).toBe(3_000)
})
