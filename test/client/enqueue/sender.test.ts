import { CallsApartError, type EnqueueCall, type Enqueued, type Store } from 'millrace/store'
import { ManualClock } from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import { Sender } from '#src/client/enqueue/sender.js'
import { ClosedError, StoreFullError, StoreRefusedError, StoreUnavailableError } from '#src/core/errors.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'

const queue = { name: 'q', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
const call = (n: number, jobs = 1): EnqueueCall => ({
  callId: `c${n}`,
  queue: 'q',
  jobs: Array.from({ length: jobs }, (_, i) => ({
    id: `${n}-${i}`,
    task: 't',
    payload: '1',
    priority: 0,
    rememberMs: 0,
  })),
})

async function store(): Promise<MemoryStore> {
  const made = new MemoryStore()
  await made.open([queue])
  return made
}

const senderOn = (store: Store, mono = () => performance.now()) => new Sender(async () => store, mono)

describe('the sender', () => {
  it('repeats a call that took long to fail once, and not more after three seconds by its clock', async () => {
    const clock = new ManualClock(0)
    const away: Store = new MemoryStore()
    let calls = 0
    away.enqueue = () => {
      calls += 1
      clock.advance(3_001)
      return Promise.reject(new StoreUnavailableError('away.'))
    }

    await expect(senderOn(away, () => clock.mono()).send(call(1))).rejects.toThrow('away.')
    expect(calls).toBe(2)
  })

  it('repeats a doubtful call unchanged, and its jobs are stored once', async () => {
    const memory = await store()
    const enqueue = memory.enqueue.bind(memory)
    let calls = 0
    memory.enqueue = async (batch) => {
      const answers = await enqueue(batch)
      calls += 1
      if (calls === 1) throw new StoreUnavailableError('the answer was lost.')
      return answers
    }

    expect(await senderOn(memory).send(call(1))).toEqual(['added'])
    expect(calls).toBe(2)
    expect((await memory.depth(['q'])).depths[0]).toMatchObject({ ready: 1 })
  })

  it('reports a job as doubtful if the store stays away, and says how to be safe', async () => {
    const away: Store = new MemoryStore()
    away.enqueue = () => Promise.reject(new StoreUnavailableError('away.'))
    await expect(senderOn(away).send(call(1))).rejects.toThrow(
      /away\. Whether the job was stored is in doubt.*id of your own/,
    )
  })

  it('reports a job as doubtful if only the first try left it in doubt', async () => {
    const away: Store = new MemoryStore()
    let calls = 0
    away.enqueue = () => {
      calls += 1
      return Promise.reject(
        calls === 1
          ? new StoreUnavailableError('the answer was lost.')
          : new StoreUnavailableError('no server answers. Nothing was changed.', { inDoubt: false }),
      )
    }
    await expect(senderOn(away).send(call(1))).rejects.toMatchObject({
      ...{
        inDoubt: true,
        message: expect.stringMatching(/^the answer was lost\. Whether the job was stored is in doubt/),
      },
    })
  })

  it.each([
    new StoreRefusedError('the password is wrong.'),
    new StoreFullError('the disk is full.'),
    new ClosedError('the store'),
  ])('reports a job as doubtful if the second try fails otherwise: $code', async (later) => {
    const memory = await store()
    const enqueue = memory.enqueue.bind(memory)
    let calls = 0
    memory.enqueue = async (batch) => {
      calls += 1
      if (calls > 1) throw later
      await enqueue(batch)
      throw new StoreUnavailableError('the answer was lost.')
    }

    await expect(senderOn(memory).send(call(1))).rejects.toMatchObject({
      ...{ code: 'store-unavailable', inDoubt: true, cause: later },
      message: expect.stringMatching(/^the answer was lost\. Whether the job was stored is in doubt/),
    })
    expect(calls).toBe(2)
  })

  it('does not repeat a call that certainly changed nothing', async () => {
    let calls = 0
    const away: Store = new MemoryStore()
    away.enqueue = () => Promise.reject(new StoreUnavailableError(`no ${++calls}.`, { inDoubt: false }))
    await expect(senderOn(away).send(call(1))).rejects.toMatchObject({ message: 'no 1.', inDoubt: false })
  })

  it('does not repeat a call that failed for another reason', async () => {
    let calls = 0
    const broken: Store = new MemoryStore()
    broken.enqueue = () => Promise.reject(new Error(`no ${++calls}`))
    await expect(senderOn(broken).send(call(1))).rejects.toThrow('no 1')
  })

  it('sends at most as many jobs per trip as a remote store takes, once it is known to be remote', async () => {
    const memory = await store()
    const remote = Object.assign(Object.create(memory), { traits: { ...memory.traits, remote: true } }) as MemoryStore
    const loads: number[][] = []
    remote.enqueue = (calls) => {
      loads.push([calls.length, calls.reduce((sum, { jobs }) => sum + jobs.length, 0)])
      return memory.enqueue(calls)
    }
    const sender = senderOn(remote)
    await sender.send(call(0))
    const sent = async (counts: readonly number[]) => {
      loads.length = 0
      await Promise.all(counts.map((jobs, i) => sender.send(call(1_000 + i, jobs))))
      return loads
    }

    // One full call of single jobs at a time, and two of calls that have many.
    expect(await sent(new Array(600).fill(1))).toEqual([
      [250, 250],
      [250, 250],
      [100, 100],
    ])
    expect(await sent([250, 250, 250, 250, 100, 1])).toEqual([
      [2, 500],
      [2, 500],
      [2, 101],
    ])
    expect(await sent([250, 1, 250, 249])).toEqual([
      [1, 250],
      [3, 500],
    ])
  })

  it('sends at most 1,000 jobs together', async () => {
    const memory = await store()
    const enqueue = memory.enqueue.bind(memory)
    const loads: number[] = []
    memory.enqueue = (batch) => {
      loads.push(batch.reduce((sum, { jobs }) => sum + jobs.length, 0))
      return enqueue(batch)
    }
    const sender = senderOn(memory)
    await Promise.all(Array.from({ length: 10 }, (_, n) => sender.send(call(n, 250))))

    expect(loads).toEqual([1_000, 1_000, 500])
  })

  it('sends each call by itself if the store asks for that, and none waits for another', async () => {
    const memory = await store()
    const enqueue = memory.enqueue.bind(memory)
    let refuse = (_: Error) => {}
    memory.enqueue = (batch) => {
      if (batch.length > 1) return Promise.reject(new CallsApartError())
      if (batch[0]!.callId === 'c2') return enqueue(batch)
      return new Promise((_, reject) => (refuse = reject))
    }
    const sender = senderOn(memory)
    const first = expect(sender.send(call(1))).rejects.toThrow('locked')

    expect(await sender.send(call(2))).toEqual(['added'])
    refuse(new StoreUnavailableError('locked.', { inDoubt: false }))
    await first
  })

  it('sends calls in doubt by themselves too, if the store asks for that when they are sent again', async () => {
    const memory = await store()
    const enqueue = memory.enqueue.bind(memory)
    const sent: string[] = []
    memory.enqueue = async (batch) => {
      sent.push(batch.map(({ callId, isResent }) => `${callId}${isResent ? ' again' : ''}`).join())
      if (sent.length === 2) throw new CallsApartError()
      const answers = await enqueue(batch)
      if (sent.length === 1) throw new StoreUnavailableError('the answer was lost.')
      return answers
    }
    const sender = senderOn(memory)

    expect(await Promise.all([sender.send(call(1)), sender.send(call(2))])).toEqual([['added'], ['added']])
    expect(sent).toEqual(['c1,c2', 'c1 again,c2 again', 'c1 again', 'c2 again'])
    expect((await memory.depth(['q'])).depths[0]).toMatchObject({ ready: 2 })
  })

  it('keeps the doubt of calls that it sends by themselves, whatever becomes of each', async () => {
    const away: Store = new MemoryStore()
    const locked = new StoreUnavailableError('locked.', { inDoubt: false })
    let sent = 0
    away.enqueue = async (batch) => {
      sent += 1
      if (sent === 1) throw new StoreUnavailableError('the answer was lost.')
      if (batch.length > 1) throw new CallsApartError()
      throw batch[0]!.callId === 'c1' ? new StoreFullError('the disk is full.') : locked
    }
    const sender = senderOn(away)
    const ends = await Promise.allSettled([sender.send(call(1)), sender.send(call(2))])

    for (const end of ends)
      expect(end).toMatchObject({
        reason: { code: 'store-unavailable', inDoubt: true, message: expect.stringMatching(/^the answer was lost\./) },
      })
  })

  it('sends calls that arrive during a trip with the next one', async () => {
    const memory = await store()
    const enqueue = memory.enqueue.bind(memory)
    const sender = senderOn(memory)
    const loads: string[][] = []
    let second: Promise<Enqueued[]> | undefined
    memory.enqueue = (batch) => {
      loads.push(batch.map(({ callId }) => callId))
      second ??= sender.send(call(2))
      return enqueue(batch)
    }

    expect(await sender.send(call(1))).toEqual(['added'])
    expect(await second).toEqual(['added'])
    expect(loads).toEqual([['c1'], ['c2']])
  })
})
