/** The trace that a job carries: from wherever it is enqueued, whatever has been stored with it. */

import { createTraceState, trace } from '@opentelemetry/api'
import { defineTask, type SqliteDatabase } from 'millrace'
import { tracing } from 'millrace/telemetry'
import { testMill as millOfTests } from 'millrace/testing'
import { webHandler } from 'millrace/web'
import { describe, expect, it } from 'vitest'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { carriedOf, spanContextOf } from '#src/telemetry/carried-context.js'
import { testMill } from '../test-mill.js'
import { ask, change, served, token } from '../web/web-scene.js'
import { collectedSpans, idOf, SpanScene, shown, traceOf } from './span-scene.js'

const traceparent = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`
const mail = defineTask({ name: 'mail', run: async (_, { job }) => job.trace })
const settled = { timeout: '10s' } as const

describe('the span context that a job carries', () => {
  it('is the same after it is read, with state and flags', () => {
    const span = {
      ...{ traceId: 'ab'.repeat(16), spanId: 'cd'.repeat(8), traceFlags: 0 },
      traceState: createTraceState('a=1,b=2'),
    }
    const carried = carriedOf(span)!

    expect(carried).toEqual({ traceparent: `${traceparent.slice(0, -2)}00`, tracestate: 'a=1,b=2' })
    const { traceState, ...rest } = spanContextOf(carried)
    expect({ ...rest, state: traceState?.serialize() }).toEqual({
      ...{ traceId: span.traceId, spanId: span.spanId, traceFlags: 0, isRemote: true, state: 'a=1,b=2' },
    })
  })

  it('is absent if the API has no SDK', () => {
    expect(carriedOf(trace.getTracer('none').startSpan('none').spanContext())).toBeUndefined()
  })
})

describe('a job that is enqueued over HTTP', () => {
  /** The trace of a job that was enqueued with these headers. */
  async function enqueued(mill: ReturnType<typeof testMill>, headers: Readonly<Record<string, string>>) {
    const window = webHandler(mill, { token })
    const url = await served(window.node)
    const asked = await ask(`${url}/api/v1/queues/default/jobs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, ...change, ...headers },
      body: { task: 'mail', input: null },
    })
    const { jobs } = asked.json as { jobs: { id: string }[] }
    await window.close()
    return (await mill.job(mail, jobs[0]!.id).record())!.trace
  }

  it('carries the traceparent of the request, even without tracing', async () => {
    const mill = testMill({ tasks: [mail] })

    expect(await enqueued(mill, { traceparent, tracestate: 'a=1' })).toEqual({ traceparent, tracestate: 'a=1' })
    expect(await enqueued(mill, { traceparent: 'rubbish' })).toBeUndefined()
    expect(await enqueued(mill, {})).toBeUndefined()
  })

  it('carries it through a mill that traces without an SDK', async () => {
    expect(await enqueued(testMill({ tasks: [mail], middleware: [tracing()] }), { traceparent })).toEqual({
      traceparent,
    })
  })

  it('is traced as a child of the request', async () => {
    const of = await SpanScene.on('memory', { tasks: [mail] })
    const carried = await enqueued(of.mill, { traceparent })
    const send = await of.span('send default')

    expect([shown(send).parent, traceOf(send)]).toEqual(['cd'.repeat(8), 'ab'.repeat(16)])
    expect(carried).toEqual({ traceparent: `00-${traceOf(send)}-${idOf(send)}-01` })
  })
})

describe('a job that a listener hands out', () => {
  it('names the span that enqueued it', async () => {
    const of = await SpanScene.on('memory', { tasks: [mail] })
    await of.mill.enqueue(mail, undefined)
    const send = await of.span('send default')
    const claim = await of.mill.listener('default').next()

    expect(claim!.trace).toEqual({ traceparent: `00-${traceOf(send)}-${idOf(send)}-01` })
    await claim!.complete()
  })
})

describe('a job that is enqueued in a transaction', () => {
  it('carries the span of the enqueue, which has ended when the call returns', async () => {
    const of = await SpanScene.on('sqlite', { tasks: [mail] })
    await of.mill.ready()
    const db = (await loadDriver())(of.mill.store.text.replace(/^sqlite:/, ''))
    const job = of.mill.enqueueIn(db as unknown as SqliteDatabase, mail, undefined)
    db.close()
    const send = await of.span('send default')

    expect(shown(send).attributes).toMatchObject({ 'messaging.message.id': job.id })
    expect((await job.record())!.trace).toEqual({ traceparent: `00-${traceOf(send)}-${idOf(send)}-01` })
  })
})

describe('a stored trace', () => {
  it.each([
    ['rubbish', { traceparent: 'rubbish' }],
    ['a list', [1]],
    ['a text', 'traceparent'],
  ])('is ignored if it is invalid, as another program may write it: %s', async (_, stored) => {
    const of = await SpanScene.on('memory', { tasks: [mail], middleware: [forged(stored), tracing()].toReversed() })
    const job = await of.mill.enqueue(mail, undefined)
    await of.mill.worker().start()

    expect(await job.result(settled)).toBeUndefined()
    expect(shown(await of.span('process default'))).toMatchObject({ parent: undefined, links: [] })
  })

  const forged = (stored: unknown) => ({
    async enqueue(items: { origin?: object }[], next: () => Promise<void>) {
      for (const item of items) item.origin = { trace: stored }
      await next()
    },
  })
})

describe('a trace in tests of applications', () => {
  it('is created by drain() too', async () => {
    const exporter = collectedSpans()
    const mill = millOfTests({ tasks: [mail], middleware: [tracing()] })
    await mill.enqueue(mail, undefined)
    await mill.drain()
    await mill.close()

    expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual([
      'send default',
      'process default',
      'settle default',
    ])
  })
})
