/** What the command line shows of steps, sleeps and signals, and how it sends a signal and forgets a step. */

import { join } from 'node:path'
import { defineSignal, defineTask, millrace } from 'millrace'
import { describe, expect, it } from 'vitest'
import { nextEvent } from '../../next-event.js'
import { run, runJson } from '../command-in-process.js'
import { project, projectFiles } from '../project.js'

const orders = `
import { defineSignal, defineTask, millrace } from 'millrace'

export const approved = defineSignal({
  name: 'approved',
  data: {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value) =>
        typeof value?.yes === 'boolean' ? { value } : { issues: [{ message: 'must say yes or no', path: ['yes'] }] },
    },
  },
})
export const stopped = defineSignal({ name: 'stopped' })

export const order = defineTask({
  name: 'order',
  queue: 'orders',
  signals: [approved, stopped],
})

export default millrace({ store: 'sqlite:jobs.db', queues: { orders: {} }, tasks: [order] })
`

/** The same task with its handler: commands only look at its jobs. */
const approved = defineSignal<{ yes: boolean }>({ name: 'approved' })
const order = defineTask({
  name: 'order',
  queue: 'orders',
  async run({ id }: { id: number }, ctx) {
    await ctx.step('charge', () => ({ receipt: `R-${id}` }))
    return ctx.waitFor(approved, { timeout: '7d' })
  },
})

/** An order that waits for its approval. */
async function waitingOrder(): Promise<{ readonly cwd: string }> {
  const cwd = project({ ...projectFiles, 'millrace.config.js': orders })
  await runJson(['enqueue', 'order', '{"id":4711}', '--id', 'order-4711'], { cwd })
  const mill = millrace({ store: `sqlite:${join(cwd, 'jobs.db')}`, tasks: [order] })
  const suspended = nextEvent(mill, 'job.released')
  await mill.worker().start()
  await suspended
  await mill.close()
  return { cwd }
}

describe('a job that waits for a signal', () => {
  it('is shown with its steps and their results, and with what it waits for', async () => {
    const { cwd } = await waitingOrder()
    const shown = await run('jobs show order-4711', { cwd })
    const record = await runJson('jobs show order-4711', { cwd })
    const listed = await run('jobs list orders --state waiting', { cwd })

    expect(shown.stdout).toMatch(/state +waiting {2}for a signal, for/)
    expect(shown.stdout).toMatch(/awaits +signal 'approved' until 20\S+Z {2}in (?:7d|6d 23h)/)
    expect(shown.stdout).toContain('steps and signals: 1')
    expect(shown.stdout).toMatch(/charge +step +.* +\{"receipt":"R-4711"\}/)
    expect(record).toMatchObject({
      awaits: { signal: 'approved', until: expect.any(String) },
      steps: [{ name: 'charge', kind: 'step', at: expect.any(String), value: { receipt: 'R-4711' } }],
    })
    expect(listed.stdout).toMatch(/order-4711.*waits.*for signal 'approved'/)
  })

  it('gets a signal from the command line, whose schema checks the data, once', async () => {
    const { cwd } = await waitingOrder()
    const signal = (...words: string[]) => run(['jobs', 'signal', 'order-4711', ...words], { cwd })

    expect(await signal('approved', '{"yes":1}')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("the data of signal 'approved'"),
    })
    expect(await signal('approved', '{yes}')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('must be JSON'),
    })
    expect(await signal('aproved', '{"yes":true}')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('`signals` of the task, as this mill declares it, has approved, stopped.'),
    })
    expect(await signal('secret')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('cannot be sent by its name'),
    })
    expect(await signal()).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the name of the signal is missing'),
    })
    expect(await signal('approved', '1', '2')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("'2' is too much"),
    })
    expect((await signal('stopped')).stdout).toContain('is kept: the job finds it when it waits for it.')
    expect(await runJson(['jobs', 'signal', 'orders', 'order-4711', 'approved', '{"yes":true}'], { cwd })).toEqual({
      ...{ queue: 'orders', id: 'order-4711', signal: 'approved', answer: 'delivered' },
    })
    expect(await signal('approved', '{"yes":false}')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('was there already: the first stays'),
    })
    expect(await run('jobs cancel order-4711', { cwd })).toMatchObject({ code: 0 })
    expect(await run('jobs signal orders order-4711 stopped', { cwd })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('was not taken: the job has completed, was cancelled or never existed'),
    })
  })

  it('forgets a step, so that its next run makes it again', async () => {
    const { cwd } = await waitingOrder()
    const forgotten = await run('jobs forget-step order-4711 charge', { cwd })
    const again = await run('jobs forget-step order-4711 charge', { cwd })
    const record = await runJson<{ steps?: unknown }>('jobs show order-4711', { cwd })

    expect(forgotten.stdout).toBe("orders: step 'charge' of job order-4711 is forgotten.\n")
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("has no step or sleep 'charge'") })
    expect(record.steps).toBeUndefined()
    expect(again.stderr).toContain('To forget a signal, add --signal.')
    expect(await run('jobs forget-step order-4711', { cwd })).toMatchObject({ code: 2 })
    expect(await run('jobs forget-step order-4711 charge ship', { cwd })).toMatchObject({ code: 2 })
  })

  it('forgets a signal, which may be sent again', async () => {
    const { cwd } = await waitingOrder()
    const send = () => run('jobs signal orders order-4711 stopped', { cwd })
    expect((await send()).stdout).toContain('is kept')
    const forgotten = await run('jobs forget-step order-4711 stopped --signal', { cwd })
    const again = await run('jobs forget-step order-4711 stopped --signal', { cwd })
    expect(forgotten.stdout).toBe("orders: signal 'stopped' of job order-4711 is forgotten.\n")
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("has no signal 'stopped'") })
    expect((await send()).stdout).toContain('is kept')
    expect(await runJson('jobs forget-step order-4711 stopped --signal', { cwd })).toEqual({
      ...{ queue: 'orders', id: 'order-4711', signal: 'stopped' },
    })
  })
})
