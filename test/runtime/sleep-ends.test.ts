/** When a sleep or a wait is over: an instant that its first run fixes, however long this run and later ones work. */

import { defineSignal, defineTask, type JobContext } from 'millrace'
import { type TestMill, testMill } from 'millrace/testing'
import { expect, it, onTestFinished } from 'vitest'

const noon = Date.parse('2026-03-01T12:00:00Z')
const approved = defineSignal({ name: 'approved' })

/** A mill that has run a job of this handler, enqueued at noon, until it was not due any more; and when that is due again. */
async function worked(run: (ctx: JobContext, mill: TestMill) => Promise<unknown>) {
  const order = defineTask({ name: 'order', run: (_: unknown, ctx) => run(ctx, mill) })
  const mill: TestMill = testMill({ tasks: [order], now: noon })
  onTestFinished(() => mill.close())
  await mill.enqueue(order, undefined, { id: 'order-1' })
  await mill.drain()
  const [left] = await mill.enqueued(order)
  return { mill, minutes: left && (left.runAt.getTime() - noon) / 60_000 }
}

/** Ten minutes of work. Both are there before a sleep beside them is kept. */
const work = (ctx: JobContext, mill: TestMill) =>
  ctx.step('work', async () => {
    await ctx.step('begun', () => {})
    mill.advance('10m')
  })

it('a sleep is over at its time though a step beside it takes long', async () => {
  const { minutes } = await worked((ctx, mill) => Promise.all([ctx.sleep('cool-off', '1h'), work(ctx, mill)]))
  expect(minutes).toBe(60)
})

it('a sleep that is found again is over at its time, however long the run works before it', async () => {
  let runs = 0
  const { mill, minutes } = await worked(async (ctx, mill) => {
    runs += 1
    if (runs === 1)
      return Promise.all([
        ctx.sleep('cool-off', '1h'),
        ctx.step('fails', async () => {
          await ctx.step('begun', () => {})
          await mill.queue('default').jobs.fail('order-1', 'it must begin anew')
        }),
      ])
    await ctx.step('again', () => {})
    mill.advance('10m')
    await ctx.sleep('cool-off', '1h')
    return 'woken'
  })
  expect([runs, minutes]).toEqual([2, 60])
  mill.advance('50m')
  expect((await mill.drain()).map(({ result }) => result)).toEqual(['woken'])
})

it('a job goes on at once if its sleep is over before the step beside it', async () => {
  let runs = 0
  const { minutes } = await worked(async (ctx, mill) => {
    runs += 1
    if (runs === 1) await Promise.all([ctx.sleep('cool-off', '5m'), work(ctx, mill)])
  })
  expect([runs, minutes]).toEqual([2, undefined])
})

it('a wait for a signal is over at its time though a step beside it takes long', async () => {
  const { mill } = await worked((ctx, mill) =>
    Promise.all([ctx.waitFor(approved, { timeout: '1h' }).then((answer) => answer ?? 'none'), work(ctx, mill)]),
  )
  mill.advance('50m')
  expect((await mill.drain()).map(({ result }) => result)).toEqual([['none', undefined]])
})

it('a race over waits is over when all of them are', async () => {
  const shipped = defineSignal({ name: 'shipped' })
  const { mill } = await worked((ctx) => Promise.race([ctx.waitFor(approved), ctx.waitFor(shipped)]).then(() => 'over'))
  await mill.signal('order-1', approved)
  expect((await mill.drain()).map(({ state }) => state)).toEqual(['waiting'])
  await mill.signal('order-1', shipped)
  expect((await mill.drain()).map(({ result }) => result)).toEqual(['over'])
})
