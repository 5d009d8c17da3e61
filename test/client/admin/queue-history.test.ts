import { bury, cancel, defineTask, type Mill, snooze, type Task } from 'millrace'
import { beforeEach, describe, expect, it } from 'vitest'
import type { HistoryOptions } from '#src/client/admin/queue-history.js'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { MemoryData, MemoryStore } from '#src/stores/memory/memory-store.js'
import { testMill, testMillOn } from '../../test-mill.js'

const hourMs = 3_600_000
const now = Date.parse('2026-11-25T14:42:20Z')

let clock: ManualClock
let data: MemoryData
beforeEach(() => {
  clock = new ManualClock(now)
  data = new MemoryData()
})

/** A mill of a process of its own, on the data of the test. */
function processOn(tasks: readonly Task[], more: { readonly history?: boolean } = {}): Mill {
  return testMillOn(new MemoryStore(clock, data), { tasks, queues: { mail: {}, video: {} }, ...more }, clock)
}

const send = defineTask({ name: 'send', queue: 'mail' })
const sum = (points: readonly { readonly enqueued: number }[]) =>
  points.reduce((all, { enqueued }) => all + enqueued, 0)

describe('the history of a queue', () => {
  it('counts the outcomes of its jobs from all processes', async () => {
    const ends = { ok: 'completed', wrong: 'failed', odd: 'buried', off: 'cancelled', later: 'released' }
    const work = defineTask({
      name: 'work',
      queue: 'mail',
      retry: { max: 0 },
      async run(input) {
        if (input === 'wrong') throw new Error('wrong')
        if (input === 'odd') return bury('odd')
        if (input === 'off') return cancel('off')
        if (input === 'later') return snooze('1h')
        return undefined
      },
    })
    const [producer, consumer] = [processOn([work]), processOn([work])]
    await producer.enqueueMany(
      work,
      Object.keys(ends).flatMap((input) => [input, input]),
    )
    await producer.enqueue(work, 'ok', { id: 'twice', delay: '1h' })
    await producer.enqueue(work, 'ok', { id: 'twice', delay: '1h' })
    const left = new Set<string>()
    const done = new Promise<void>((resolve) => {
      const ended = ({ id }: { id: string }) => left.add(id).size === 10 && resolve()
      for (const name of ['job.completed', 'job.buried', 'job.cancelled', 'job.released'] as const)
        consumer.on(name, ended)
    })
    await consumer.worker().start()
    await done
    await Promise.all([producer.close(), consumer.close()])

    const { points, step, queue } = await processOn([work]).queue('mail').history()
    expect([queue, step, points.length]).toEqual(['mail', 'minute', 60])
    expect(points[0]?.at).toEqual(new Date('2026-11-25T13:43:00Z'))
    expect(points.at(-1)).toMatchObject({
      ...{ at: new Date('2026-11-25T14:42:00Z'), enqueued: 11, started: 10 },
      ...{ completed: 2, failed: 2, dead: 4, cancelled: 2, crashed: 0 },
    })
    expect(sum(points.slice(0, -1))).toBe(0)
  })

  it('covers the requested span, in minutes or hours, without gaps and only as far back as it is kept', async () => {
    const mill = processOn([send])
    await mill.enqueue(send, 1)
    await mill.close()
    clock.advance(3 * hourMs)
    const queue = processOn([send]).queue('mail')
    const at = async (options: HistoryOptions) => {
      const { points } = await queue.history(options)
      return points.map((point) => `${point.at.toISOString().slice(5, 16)} ${point.enqueued}`)
    }
    expect(await at({ step: 'hour', from: '2026-11-25T13:59:59Z' })).toEqual([
      '11-25T13:00 0',
      '11-25T14:00 1',
      '11-25T15:00 0',
      '11-25T16:00 0',
      '11-25T17:00 0',
    ])
    expect(await at({ from: '2026-11-25T14:41:00Z', to: '2026-11-25T14:43:00Z' })).toEqual([
      '11-25T14:41 0',
      '11-25T14:42 1',
    ])
    expect(await at({ from: new Date(0) })).toHaveLength(7 * 24 * 60 + 1)
    expect(await at({ step: 'hour', from: new Date(0), to: '2200-01-01T00:00:00Z' })).toHaveLength(366 * 24 + 2)
  })

  it('is read for several queues in one trip', async () => {
    const mill = processOn([send])
    await mill.enqueue(send, 1)
    await mill.close()
    const store = new MemoryStore(clock, data)
    const asked: string[][] = []
    const { history } = store
    Object.assign(store, {
      history: {
        ...history,
        read: (queues: string[], span: never) => asked.push(queues) && history.read(queues, span),
      },
    })
    const other = testMillOn(store, { tasks: [send], queues: { mail: {}, video: {} } }, clock)
    expect((await other.histories()).map(({ queue, points }) => [queue, sum(points)])).toEqual([
      ['mail', 1],
      ['video', 0],
    ])
    expect(await other.histories(['video'], { step: 'hour' })).toHaveLength(1)
    expect(asked).toEqual([['mail', 'video'], ['video']])
    await expect(other.histories(['none'])).rejects.toMatchObject({ code: 'queue-unknown' })
  })

  it('is not kept with history: false', async () => {
    const mill = processOn([send], { history: false })
    await mill.enqueue(send, 1)
    await mill.close()
    expect(data.history.size).toBe(0)
  })

  it('refuses another step, an invalid instant, and an empty span', async () => {
    const queue = testMill({ tasks: [send] }).queue('mail')
    const refused = (options: object, words: RegExp) =>
      expect(queue.history(options)).rejects.toThrow(
        expect.objectContaining({ code: 'argument-invalid', message: expect.stringMatching(words) }),
      )
    await refused({ step: 'day' }, /history\(\{ step \}\) must be 'minute' or 'hour'; got "day"/)
    await refused({ from: 5 }, /history\(\{ from \}\) must be a valid Date or ISO-8601 text/)
    await refused({ to: 'soon' }, /history\(\{ to \}\)/)
    await refused({ from: '2026-11-25T15:00:00Z', to: '2026-11-25T14:00:00Z' }, /must name a span of time/)
  })

  it('is refused by a store that has no history', async () => {
    const store = new MemoryStore(clock, data)
    Object.assign(store, { history: undefined })
    const mill = testMillOn(store, { tasks: [send] })
    await expect(mill.queue('mail').history()).rejects.toMatchObject({ code: 'unsupported-by-store' })
  })
})
