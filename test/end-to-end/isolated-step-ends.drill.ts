/** A process of its own that waits for a signal beside a step: it is stopped, cancelled, or its run is ended from outside. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { DefinedSignal, Mill, Task } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../cli/project.js'
import { nextEvent } from '../next-event.js'

const program = (folder: string) => `
import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { defineSignal, defineTask, millrace } from 'millrace'
const file = (name) => ${JSON.stringify(`${folder}/`)} + name
export const approved = defineSignal({ name: 'approved' })
export const order = defineTask({
  name: 'order',
  isolate: 'process',
  timeLimit: '1m',
  module: import.meta.url,
  env: [],
  retry: { max: 9, backoff: () => 0 },
  async run(_, ctx) {
    const step = ctx.step('mail', async ({ signal }) => {
      appendFileSync(file('calls'), 'mail ')
      signal.addEventListener('abort', () => writeFileSync(file('aborted'), signal.reason.code))
      while (!existsSync(file('end')) && !signal.aborted) await delay(20)
      return 'sent'
    })
    return (await Promise.all([step, ctx.waitFor(approved)]))[0]
  },
})
export const mill = millrace({ store: 'sqlite:' + file('jobs.db'), queues: { default: { lease: '3s' } }, tasks: [order] })
`

/** A job whose process is in its step, beside which it waits. */
async function scene() {
  const folder = mkdtempSync(join(root, 'test/end-to-end/step-ends-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const module = join(folder, 'order.mjs')
  writeFileSync(module, program(folder))
  const { mill, order, approved } = (await import(pathToFileURL(module).href)) as {
    mill: Mill
    order: Task<'order', unknown, unknown, string>
    approved: DefinedSignal<undefined>
  }
  onTestFinished(() => mill.close())
  const worker = mill.worker({ concurrency: 1 })
  await worker.start()
  const job = await mill.enqueue(order, undefined)
  const read = (name: string) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : '')
  await expect.poll(() => read('calls'), { timeout: 30_000 }).toBe('mail ')
  return { mill, approved, worker, job, read, end: () => writeFileSync(join(folder, 'end'), '') }
}

it('keeps its step within the grace of a stop, and never calls it again', { timeout: 90_000 }, async () => {
  const { mill, approved, worker, job, read, end } = await scene()
  const stopped = worker.stop()
  end()
  await stopped
  await expect.poll(() => job.status(), { timeout: 30_000 }).toBe('waiting')
  expect(await mill.signal(job, approved)).toBe('delivered')
  await mill.worker().start()
  expect(await job.result({ timeout: '30s' })).toBe('sent')
  expect([read('calls'), read('aborted')]).toEqual(['mail ', ''])
})

it('aborts its step when the grace of a stop is over, in bounded time, and puts its job back as it was', {
  timeout: 90_000,
}, async () => {
  const { worker, job, read } = await scene()
  const before = performance.now()
  await worker.stop({ grace: 10 })
  expect(performance.now() - before).toBeLessThan(10_000)
  await expect.poll(() => job.status(), { timeout: 30_000 }).toBe('ready')
  expect(await job.record()).toMatchObject({ attempt: 1, crashes: 0 })
  expect([read('calls'), read('aborted')]).toEqual(['mail ', 'worker-stopped'])
})

it('aborts its step when its job is cancelled', { timeout: 90_000 }, async () => {
  const { mill, job, read } = await scene()
  const cancelled = nextEvent(mill, 'job.cancelled')
  await job.cancel('not wanted')
  await cancelled
  expect(await job.status()).toBe('cancelled')
  expect([read('calls'), read('aborted')]).toEqual(['mail ', 'job-cancelled'])
})

it('ends when its run is ended from outside, and the next run calls the step again', { timeout: 90_000 }, async () => {
  const { mill, job, read, end } = await scene()
  await mill.queue('default').jobs.fail(job.id, 'an operator ends the run', { last: false })
  await expect.poll(() => read('calls'), { timeout: 30_000 }).toBe('mail mail ')
  end()
  await expect.poll(() => job.status(), { timeout: 30_000 }).toBe('waiting')
  expect(await job.record()).toMatchObject({ attempt: 2 })
})
