/** Steps and signals over HTTP: what a window shows of them, and how it sends a signal and forgets a step. */

import { defineSignal, defineTask } from 'millrace'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { nextEvent } from '../next-event.js'
import { type Answered, token, WebScene } from './web-scene.js'

const approved = defineSignal({ name: 'approved', data: z.object({ yes: z.boolean() }) })
const order = defineTask({
  name: 'order',
  queue: 'orders',
  signals: [approved],
  async run(_: { id: string }, ctx) {
    const paid = await ctx.step('charge', () => ({ receipt: 'R-1' }))
    await ctx.waitFor(approved, { timeout: '7d' })
    return paid
  },
})

/** A window on an order that waits for its approval. */
async function waitingOrder(options: object = {}): Promise<WebScene> {
  const scene = await WebScene.on(
    'sqlite',
    { token, ...options },
    { queues: { orders: {} }, tasks: [order], schedules: {} },
  )
  await scene.mill.enqueue(order, { id: '4711' }, { id: 'order-4711' })
  const worker = scene.mill.worker()
  const suspended = nextEvent(scene.mill, 'job.released')
  await worker.start()
  await suspended
  await worker.stop()
  return scene
}

const path = 'queues/orders/jobs/order-4711'
const errorOf = ({ json }: Answered) => (json as { error: { code: string; message: string } }).error

it('a job shows its steps, the signal that it waits for, and those that may be sent', async () => {
  const scene = await waitingOrder()

  expect((await scene.get(path)).json).toMatchObject({
    ...{ state: 'waiting', signals: ['approved'] },
    awaits: { signal: 'approved', until: expect.any(String) },
    steps: [{ name: 'charge', kind: 'step', at: expect.any(String), value: { receipt: 'R-1' } }],
  })
})

it('a window that hides payloads shows steps without their values', async () => {
  const scene = await waitingOrder({ hidePayloads: true })

  expect((await scene.get(path)).json).toMatchObject({
    steps: [{ name: 'charge', kind: 'step', at: expect.any(String) }],
  })
  expect((await scene.get(path)).text).not.toContain('R-1')
})

it('a window that redacts jobs gets their steps to redact', async () => {
  const redact = (job: { steps?: readonly object[] }) => ({
    ...job,
    steps: job.steps?.map((step) => ({ ...step, value: '…' })),
  })
  const scene = await waitingOrder({ redact })

  expect((await scene.get(path)).json).toMatchObject({ steps: [{ name: 'charge', value: '…' }] })
})

it('a signal is checked by its schema, delivered once, and audited without its data', async () => {
  const scene = await waitingOrder()
  const wrong = await scene.post(`${path}/signal`, { signal: 'approved', data: { yes: 'of course' } })
  const strange = await scene.post(`${path}/signal`, { signal: 'stopped' })
  const sent = await scene.post(`${path}/signal`, { signal: 'approved', data: { yes: true } })
  const again = await scene.post(`${path}/signal`, { signal: 'approved', data: { yes: true } })
  const elsewhere = await scene.post('queues/orders/jobs/nobody/signal', { signal: 'approved', data: { yes: true } })

  expect([wrong.status, errorOf(wrong).code]).toEqual([400, 'job-invalid'])
  expect([strange.status, errorOf(strange).code]).toEqual([400, 'argument-invalid'])
  expect([sent.status, sent.json]).toEqual([200, { answer: 'delivered', changed: 1 }])
  expect(again.json).toEqual({ answer: 'duplicate', changed: 0 })
  expect(elsewhere.json).toEqual({ answer: 'gone', changed: 0 })
  expect(scene.audits.map(({ action, which, changed, error }) => [action, which, changed ?? error])).toEqual([
    ['job.signal', 'approved', 'job-invalid'],
    ['job.signal', 'stopped', 'argument-invalid'],
    ['job.signal', 'approved', 1],
    ['job.signal', 'approved', 0],
    ['job.signal', 'approved', 0],
  ])
  expect(JSON.stringify(scene.audits)).not.toContain('yes')
})

it('a step is forgotten once; a job that is not kept is refused', async () => {
  const scene = await waitingOrder()
  const forgotten = await scene.post(`${path}/forget-step`, { step: 'charge' })
  const again = await scene.post(`${path}/forget-step`, { step: 'charge' })
  const elsewhere = await scene.post('queues/orders/jobs/nobody/forget-step', { step: 'charge' })

  expect(scene.audits[0]).toMatchObject({ action: 'job.forget-step', which: 'charge', changed: 1 })
  expect(forgotten.json).toEqual({ changed: 1, more: false })
  expect(again.json).toEqual({ changed: 0, more: false })
  expect([elsewhere.status, errorOf(elsewhere).code]).toEqual([404, 'job-unknown'])
})

it('a signal is forgotten if the body says that it is one', async () => {
  const scene = await waitingOrder()
  await scene.post(`${path}/signal`, { signal: 'approved', data: { yes: true } })
  const asStep = await scene.post(`${path}/forget-step`, { step: 'approved' })
  const forgotten = await scene.post(`${path}/forget-step`, { step: 'approved', signal: true })
  const wrong = await scene.post(`${path}/forget-step`, { step: 'approved', signal: 'yes' })

  expect([asStep.json, forgotten.json]).toEqual([
    { changed: 0, more: false },
    { changed: 1, more: false },
  ])
  expect([wrong.status, errorOf(wrong).code]).toEqual([400, 'argument-invalid'])
})

it('a step may be named by any text of 1 to 200 characters', async () => {
  const scene = await waitingOrder()
  const asked = ['two\nlines', 'x'.repeat(200), '', 'x'.repeat(201)].map((step) =>
    scene.post(`${path}/forget-step`, { step }),
  )

  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 400, 400])
})
