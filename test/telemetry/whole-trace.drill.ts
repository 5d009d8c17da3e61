/** One trace seen whole: from a request over its job to the job that this enqueues, over processes that export for themselves. */

import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { outline, TraceCollector } from './trace-collector.js'
import { TracedProject } from './traced-project.js'

const everySpan = [
  'POST /orders',
  '  send orders',
  '    process orders',
  '      charge card',
  '      send shipping',
  '        process shipping',
  '          print label',
  '          settle shipping',
  '      settle orders',
]

/** The number that a handler has written into the file as it began to hang. */
async function pidIn(file: string): Promise<number> {
  await expect.poll(() => existsSync(file) && readFileSync(file, 'utf8'), { timeout: 30_000 }).toMatch(/^\d+$/)
  return Number(readFileSync(file, 'utf8'))
}

describe('a trace', { timeout: 90_000 }, () => {
  it('spans the web server, the worker and the process of an isolated job', async () => {
    const collector = await TraceCollector.start()
    const of = new TracedProject(collector)
    const web = await of.web()
    of.worker()
    const traceId = 'ab'.repeat(16)
    const id = await web.order({}, { traceparent: `00-${traceId}-${'cd'.repeat(8)}-01` })
    const spans = await collector.spans(everySpan.map((line) => line.trim()))
    const named = new Map(spans.map((span) => [span.name, span]))
    const [request, send, process, child] = ['POST /orders', 'send orders', 'process orders', 'process shipping'].map(
      (name) => named.get(name)!,
    )

    expect(outline(spans, 'cd'.repeat(8))).toEqual(everySpan)
    expect(spans).toHaveLength(everySpan.length)
    expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]))
    expect([process!.links, child!.links]).toEqual([[send!.spanId], [named.get('send shipping')!.spanId]])
    expect(send!.attributes).toMatchObject({ 'messaging.message.id': id, 'messaging.operation.type': 'send' })
    expect(process!.attributes).toMatchObject({ 'messaging.message.id': id, 'messaging.destination.name': 'orders' })
    expect(child!.attributes).toMatchObject({ 'millrace.task': 'ship', 'millrace.discipline': 'isolated' })
    const pids = [request, send, process, child].map((span) => span!.attributes['process.pid'])
    expect(pids.slice(0, 2)).toEqual([web.pid, web.pid])
    expect(new Set(pids).size).toBe(3)
    expect(named.get('send shipping')!.attributes['process.pid']).toBe(pids[2])
  })

  it('includes the run after a killed worker, linked to the same enqueue', async () => {
    const collector = await TraceCollector.start()
    const of = new TracedProject(collector)
    const web = await of.web()
    of.worker()
    await web.order({ hang: of.file('began') })
    const killed = await pidIn(of.file('began'))
    process.kill(killed, 'SIGKILL')
    const spans = await collector.spans(['settle shipping', 'process orders', 'send orders'])
    const named = new Map(spans.map((span) => [span.name, span]))
    const [send, second] = [named.get('send orders')!, named.get('process orders')!]

    // What the first had collected was killed with it.
    expect(spans.filter(({ name }) => name === 'process orders')).toHaveLength(1)
    expect(second).toMatchObject({ links: [send.spanId], parentSpanId: send.spanId, traceId: send.traceId })
    expect(second.attributes['process.pid']).not.toBe(killed)
  })

  it('includes the run of a killed process, reported by its worker, and the run after it', async () => {
    const collector = await TraceCollector.start()
    const of = new TracedProject(collector)
    const web = await of.web()
    of.worker()
    await web.order({ hangShip: of.file('began') })
    const killed = await pidIn(of.file('began'))
    process.kill(killed, 'SIGKILL')
    const [first, second] = await collector.named('process shipping', 2)
    const [send] = await collector.named('send shipping')
    const [run] = await collector.named('process orders')

    for (const span of [first!, second!])
      expect(span).toMatchObject({ links: [send!.spanId], parentSpanId: send!.spanId, traceId: send!.traceId })
    expect(first).toMatchObject({
      status: { code: 2, message: expect.stringContaining('was killed by SIGKILL') },
      attributes: {
        ...{ 'error.type': 'process-died', 'millrace.attempt': 1, 'millrace.outcome': 'failed' },
        'process.pid': run!.attributes['process.pid'],
      },
    })
    expect(second!.attributes).toMatchObject({ 'millrace.attempt': 2, 'millrace.outcome': 'completed' })
  })
})
