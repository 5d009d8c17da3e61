/** The ticks of schedules in a test mill: as of a worker that was there, however far the clock was moved. */

import { defineTask } from 'millrace'
import { testMill } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { recorded } from '../next-event.js'

/** Closed when the test is over. */
const made: typeof testMill = (options) => {
  const mill = testMill({ now: '2026-03-01T09:00:00Z', ...options })
  onTestFinished(() => mill.close())
  return mill
}

const mail = defineTask({ name: 'mail', input: z.object({ to: z.string() }), run: async ({ to }) => ({ sent: to }) })

describe('schedules of a test mill', () => {
  const input = { to: 'team' }
  const nightly = { cron: '0 3 * * *', task: mail, input } as const

  it('tick at each instant that the clock has passed, even if no drain runs in between', async () => {
    const mill = made({ tasks: [mail], schedules: { nightly, weekly: { ...nightly, cron: '0 1 * * 1' } } })
    mill.advance('2d')

    expect((await mill.drain()).map(({ id }) => id)).toEqual([
      'weekly@2026-03-02T01:00:00Z',
      'nightly@2026-03-02T03:00:00Z',
      'nightly@2026-03-03T03:00:00Z',
    ])
    expect(await mill.drain()).toEqual([])
  })

  it('miss no tick, and skip none whose previous job has run by then', async () => {
    const mill = made({ tasks: [mail], schedules: { nightly: { ...nightly, onMissed: 'skip', overlap: 'skip' } } })
    const missed = recorded(mill, 'schedule.missed')
    const skipped = recorded(mill, 'schedule.skipped')
    mill.advance('3d')

    expect(await mill.drain()).toHaveLength(3)
    expect([missed, skipped]).toEqual([[], []])
  })

  it('can run before the first drain, which still ticks as usual', async () => {
    const mill = made({ tasks: [mail], schedules: { nightly } })
    const { id } = await mill.schedules.runNow('nightly')

    expect(await mill.drain()).toMatchObject([{ id, state: 'completed', result: { sent: 'team' } }])
    mill.advance('1d')
    expect(await mill.drain()).toMatchObject([{ id: 'nightly@2026-03-02T03:00:00Z' }])
  })

  it('tick from then on if they are set at run time, into the drained queues', async () => {
    const mill = made({ tasks: [mail], queues: { other: {} } })
    await mill.schedules.set('hourly', { every: '1h', task: mail, input, enqueue: { queue: 'other' } })
    mill.advance('1h')

    expect(await mill.drain({ queues: ['default'] })).toEqual([])
    expect(await mill.drain()).toMatchObject([{ id: 'hourly@2026-03-01T10:00:00Z', queue: 'other' }])
    await mill.schedules.pause('hourly')
    mill.advance('1h')
    expect(await mill.drain()).toEqual([])
  })

  it('do not tick for the time before they were set, though others that are due tick late', async () => {
    const mill = made({ tasks: [mail], schedules: { nightly } })
    mill.advance('1d')
    await mill.schedules.set('hourly', { every: '1h', task: mail, input })

    expect((await mill.drain()).map(({ id }) => id)).toEqual(['nightly@2026-03-02T03:00:00Z'])
    mill.advance('1h')
    expect((await mill.drain()).map(({ id }) => id)).toEqual(['hourly@2026-03-02T10:00:00Z'])
  })

  it('tick once, even if the ticks of one queue are drained after later ones of another', async () => {
    const other = defineTask({ name: 'other', queue: 'other', run: () => {} })
    const schedules = { a: { every: '1h', task: mail, input }, b: { every: '1h', task: other } } as const
    const mill = made({ tasks: [mail, other], schedules })
    const ids: string[] = []
    const drained = async (queue: 'default' | 'other') => {
      for (const { id } of await mill.drain({ queues: [queue] })) ids.push(id)
    }
    mill.advance('1h')
    await drained('default')
    mill.advance('1h')
    await drained('other')
    await drained('default')

    expect(ids).toEqual([
      ...['a@2026-03-01T10:00:00Z', 'b@2026-03-01T10:00:00Z', 'b@2026-03-01T11:00:00Z', 'a@2026-03-01T11:00:00Z'],
    ])
  })

  it('wait while their queue is full, and tick when it is not', async () => {
    const queues = { default: { maxPending: 1 } }
    const mill = made({ tasks: [mail], queues, schedules: { nightly } })
    await mill.enqueue(mail, { to: 'ada' }, { delay: '3d' })
    mill.advance('1d')

    expect(await mill.drain()).toEqual([])
    mill.advance('2d')
    expect(await mill.drain()).toHaveLength(4)
  })
})
