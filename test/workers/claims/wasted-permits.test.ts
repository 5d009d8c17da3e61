/**
 * The permits of throttled jobs that were claimed and not started: each is told, and the job goes back; and how few
 * they are where everything is late.
 */
import type { QueueOptions } from 'millrace'
import { describe, expect, it } from 'vitest'
import { JobCancelledError } from '#src/core/errors.js'
import { bench } from './throttled-bench.js'

const ref = (id: string) => ({ queue: 'default', id, task: 't' })

describe('a permit is wasted', () => {
  it('if a stop puts back a job that waits for its instant, or one that a claim still brings', async () => {
    const { inFlight, claimed, wasted, state, endAll, pass } = await bench({})
    await claimed(['runs'])
    await pass(51)
    await claimed(['waits'])
    inFlight.close()
    await claimed(['comes late'])
    await endAll()

    expect(wasted).toEqual([
      { ...ref('waits'), reason: 'stopping' },
      { ...ref('comes late'), reason: 'stopping' },
    ])
    expect(await Promise.all(['runs', 'waits', 'comes late'].map(state))).toEqual([undefined, 'ready', 'ready'])
  })

  it('if the job was cancelled before it began', async () => {
    const { inFlight, claimed, wasted, pass, endAll } = await bench({})
    await claimed(['cancelled'])
    const [cancelled] = inFlight.executions
    cancelled!.abort(new JobCancelledError('default', 'cancelled'))
    await pass(51)
    await endAll()

    expect(wasted).toEqual([{ ...ref('cancelled'), reason: 'cancelled' }])
  })

  it('if this worker has no handler for the job', async () => {
    const { claimed, wasted } = await bench({})
    await claimed(['a'], { name: 'elsewhere' })

    expect(wasted).toEqual([{ queue: 'default', id: 'a', task: 'elsewhere', reason: 'unknown-task' }])
  })

  it('by no job that begins at its instant, and not in a queue without a throttle', async () => {
    const throttled = await bench({ slots: 2 })
    await throttled.claimed(['a', 'b'])
    await throttled.pass(51)
    await throttled.endAll()
    const free = await bench({ throttled: false })
    await free.claimed(['a', 'b'])
    free.inFlight.close()
    await free.endAll()

    expect([throttled.begun, throttled.wasted, free.begun, free.wasted]).toEqual([['a', 'b'], [], ['a'], []])
  })
})

describe('a job of a throttled queue', () => {
  it('begins 50 ms after the store granted it, however soon the answer came, together with all that were granted with it', async () => {
    const { claimed, begun, pass } = await bench({ slots: 9 })
    await claimed(['quick'])
    await pass(51)
    await pass(10)
    await claimed(['a', 'b'], { sentAt: 51, grantedAt: 51 })
    await pass(40)
    expect(begun).toEqual(['quick'])
    await pass(2)

    expect(begun).toEqual(['quick', 'a', 'b'])
  })

  it('is put back if it can only begin 100 ms after its grant, because its start would fall into a window given to others', async () => {
    const { claimed, begun, wasted, pass, endAll, state } = await bench({ slots: 9 })
    await claimed(['before'])
    await pass(51)
    await claimed(['late'])
    await pass(100)
    await endAll()

    expect(begun).toEqual(['before'])
    expect(wasted).toEqual([{ ...ref('late'), reason: 'late' }])
    expect(await state('late')).toBe('ready')
  })

  it('finds its slot free, whatever else was claimed meanwhile', async () => {
    const { claimed, begun, pass } = await bench({ slots: 2 })
    await claimed(['waits'])
    await claimed(['first', 'second'], { queue: 'other' })
    expect(begun).toEqual(['first'])
    await pass(51)

    expect(begun).toEqual(['first', 'waits'])
  })

  it('begins after others in its slot if more jobs than slots were claimed because all of them are short', async () => {
    const { claimed, begun, wasted, pass, endAll } = await bench({ slots: 1 })
    await claimed(['first'])
    await pass(51)
    await endAll()
    await pass(10)
    await claimed(['a', 'b', 'c'])
    await claimed(['other'], { queue: 'other' })
    expect(begun).toEqual(['first'])
    await pass(51)
    for (let ends = 0; ends < 3; ends += 1) await endAll()

    expect(begun).toEqual(['first', 'a', 'b', 'c', 'other'])
    expect(wasted).toEqual([])
  })

  it('is put back if none of its slots was free in time, even if none is free yet', async () => {
    const { inFlight, claimed, begun, wasted, pass } = await bench({ slots: 1 })
    await claimed(['runs', 'a', 'b'])
    await pass(51)
    inFlight.relieve()
    expect(wasted).toEqual([])
    await pass(60)
    inFlight.relieve()

    expect(begun).toEqual(['runs'])
    expect(wasted).toEqual(['a', 'b'].map((id) => ({ ...ref(id), reason: 'late' })))
  })

  it('may wait for its slot as long as its spread allows', async () => {
    const { inFlight, claimed, wasted, pass } = await bench({ slots: 1, window: 3_600_000 })
    await claimed(['runs', 'a'])
    await pass(51)
    await pass(990)
    inFlight.relieve()
    expect(wasted).toEqual([])
    await pass(10)
    inFlight.relieve()

    expect(wasted).toEqual([{ ...ref('a'), reason: 'late' }])
  })

  it('is put back if its slot is free too late, which costs no attempt', async () => {
    const { claimed, begun, wasted, pass, endAll } = await bench({ slots: 1 })
    await claimed(['a', 'b'])
    await pass(51)
    await pass(60)
    await endAll()

    expect(begun).toEqual(['a'])
    expect(wasted).toEqual([{ ...ref('b'), reason: 'late' }])
  })

  it('begins even if the event loop is always late: after two departures that were put back, claims declare the delay', async () => {
    const { claimed, begun, wasted, late, declared, pass, endAll } = await bench({ slots: 9 })
    await claimed(['a'])
    for (let times = 0; times < 4; times += 1) {
      // Timers fire 80 ms late: 31 ms after the spread.
      await pass(130)
      await endAll()
      await claimed(times < 2 ? [] : [`b${times}`])
    }

    expect(begun).toEqual(['a', 'b2'])
    expect(wasted).toEqual(Array(2).fill({ ...ref('a'), reason: 'late' }))
    expect(declared).toEqual([0, 0, 47, 47, 47])
    expect(late).toEqual([])
  })

  it('is claimed without lateness again after sixteen departures in time', async () => {
    const { claimed, declared, wasted, pass, endAll } = await bench({ slots: 9 })
    for (let times = 0; times < 20; times += 1) {
      await claimed(times < 2 ? ['a'] : [`${times}`])
      await pass(times < 2 ? 130 : 51)
      await endAll()
    }

    expect(wasted).toHaveLength(2)
    expect([declared.slice(0, 3), declared.slice(3, 17), declared.slice(17)]).toEqual([
      [0, 0, 47],
      Array(14).fill(47),
      [0, 0, 0],
    ])
  })

  it('begins in time even if the steps before its handler always take long', async () => {
    const { claimed, begun, wasted, late, pass, endAll, slowness } = await bench({ slots: 9 })
    slowness.ms = 60
    await claimed(['a'])
    for (let times = 0; times < 3; times += 1) {
      await pass(51)
      await endAll()
      await claimed([])
    }

    expect([begun, late]).toEqual([['a'], []])
    expect(wasted).toEqual(Array(2).fill({ ...ref('a'), reason: 'late' }))
  })

  it('is put back if the steps before its handler take longer than a claim may declare; after three in a row the next one begins anyway', async () => {
    const { claimed, begun, wasted, late, pass, endAll, slowness } = await bench({ slots: 9 })
    await claimed(['before'])
    await pass(51)
    slowness.ms = 20_000
    await claimed(['a'])
    await pass(51)
    await endAll()
    expect([begun, wasted]).toEqual([['before'], [{ ...ref('a'), reason: 'late' }]])
    for (let times = 0; times < 3; times += 1) {
      await claimed([])
      await pass(51)
      await endAll()
    }

    expect(wasted).toEqual(Array(3).fill({ ...ref('a'), reason: 'late' }))
    expect(begun).toEqual(['before', 'a'])
    expect(late).toEqual([{ ...ref('a'), lateMs: 9_952 }])
  })

  it('begins in time even if no answer of the store comes within its spread', async () => {
    const { claimed, begun, late, wasted, pass, endAll } = await bench({ slots: 9 })
    for (let trips = 0; trips < 3; trips += 1) {
      await pass(400)
      await claimed(trips === 0 ? ['a'] : [], { sentAt: trips * 460, grantedAt: trips * 460 + 200 })
      await pass(60)
      await endAll()
    }

    expect([begun, wasted.length, late]).toEqual([['a'], 2, []])
  })

  it('begins as soon as it can if the store is farther away than a claim may declare', async () => {
    const { claimed, begun, late, wasted, pass, endAll } = await bench({ slots: 9 })
    for (let trips = 0; trips < 8; trips += 1) {
      await pass(25_000)
      await claimed(trips === 0 ? ['a'] : [], { sentAt: trips * 25_000, grantedAt: trips * 25_000 + 12_500 })
      await pass(0)
      await endAll()
    }

    expect([begun, wasted.length, late.length]).toEqual([['a'], 7, 1])
  })
})

describe('jobs with a lease that is not renewed', () => {
  const queue: QueueOptions = { renewLease: false, lease: '10m' }

  it('have a slot each if the queue is limited, and begin together', async () => {
    const { claimed, begun, pass } = await bench({ slots: 3, queue })
    await claimed(['a', 'b', 'c'])
    await pass(51)

    expect(begun).toEqual(['a', 'b', 'c'])
  })

  it('have one slot for all if it is not limited', async () => {
    const { claimed, begun } = await bench({ slots: 3, queue, throttled: false })
    await claimed(['a', 'b', 'c'])

    expect(begun).toEqual(['a'])
  })
})
