import { defineOrderedTask, defineTask, exponential } from 'millrace'
import { describe, expect, it } from 'vitest'
import { nextEvent } from '../../next-event.js'
import { storeKinds, testMill } from '../../test-mill.js'

const retry = { max: 2, backoff: exponential({ base: 1, max: 1 }) }

describe.each(storeKinds)('the record of a failed job, on %s', (kind) => {
  it('lists each attempt, with the last in full, also for an ordered job', async () => {
    const lastErrors: (string | undefined)[] = []
    const send = defineTask({
      name: 'send',
      retry,
      run: async (_, { job }) => {
        lastErrors.push(job.lastError?.split('\n', 1)[0])
        throw new Error(`attempt ${job.attempt} found nobody`)
      },
    })
    const sync = defineOrderedTask({
      name: 'sync',
      queue: 'orders',
      retry,
      run: async () => {
        throw new Error('no such order')
      },
    })
    const mill = testMill({ tasks: [send, sync], queues: { orders: { ordered: true } } }, kind)
    await mill.enqueue(send, 1, { id: 'a' })
    await mill.enqueue(sync, 1, { id: 'o' })
    const buried = [
      nextEvent(mill, 'job.buried', ({ id }) => id === 'a'),
      nextEvent(mill, 'job.buried', ({ id }) => id === 'o'),
    ]
    await mill.worker().start()
    await Promise.all(buried)

    const record = await mill.queue('default').jobs.get('a')
    expect(record?.attempt).toBe(3)
    expect(record?.error).toMatch(/^Error: attempt 3 found nobody\n +at /)
    expect(record?.failures?.map(({ attempt, error }) => [attempt, error.split('\n', 1)[0]])).toEqual([
      [1, 'Error: attempt 1 found nobody'],
      [2, 'Error: attempt 2 found nobody'],
      [3, 'Error: attempt 3 found nobody'],
    ])
    expect(record?.failures?.at(-1)?.error).toBe(record?.error)
    expect(lastErrors).toEqual([undefined, 'Error: attempt 1 found nobody', 'Error: attempt 2 found nobody'])
    const dead = await mill.queue('orders').morgue.get('o')
    expect(dead?.failures).toHaveLength(3)
    expect(dead?.error).toMatch(/^Error: no such order/)

    const thrown = await mill
      .job(send, 'a')
      .result()
      .catch((error: Error) => error)
    expect(String(thrown)).not.toContain('\u001e')
  })

  it('includes failures by an operator', async () => {
    const encode = defineTask({ name: 'encode', queue: 'video', retry: { max: 4 } })
    const mill = testMill({ queues: { video: {} }, tasks: [encode] }, kind)
    await mill.enqueue(encode, {}, { id: 'film' })
    const listener = mill.listener('video')
    await listener.next()
    await mill.queue('video').jobs.fail('film', 'it hangs', { last: false })
    await listener.next()
    await mill.queue('video').jobs.fail('film', 'it hangs again')

    expect(await mill.queue('video').morgue.get('film')).toMatchObject({
      error: 'it hangs again',
      failures: [
        { attempt: 1, error: 'it hangs' },
        { attempt: 2, error: 'it hangs again' },
      ],
    })
  })
})
