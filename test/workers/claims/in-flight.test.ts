import { defineOrderedTask, defineTask } from 'millrace'
import type { Claim } from 'millrace/store'
import { memoryHarness } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { JobCancelledError, LeaseLostError, StoreUnavailableError } from '#src/core/errors.js'
import type { AnyTask } from '#src/core/task/any-task.js'
import { checkOptions } from '#src/mill/options/mill-options.js'
import type { Settler } from '#src/runtime/run/settlement.js'
import type { ClaimKey } from '#src/stores/contract/settle.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { testMillOn } from '../../test-mill.js'
import { inFlightOn } from './in-flight-on.js'

/** A workbench with one slot and two claims in hand: one runs until it is told to end, the other waits for the slot. */
async function twoInHand() {
  const begun: string[] = []
  let end = () => {}
  const task = defineTask({
    name: 't',
    run: (_, ctx) => {
      begun.push(ctx.job.id)
      return new Promise<void>((resolve) => (end = resolve))
    },
  })
  const { inFlight, store, settler, pass } = await bench(task, ['runs', 'waits'])
  return { begun, store, inFlight, pass, endFirst: () => ended(() => end(), settler) }
}

/** The same with batches: one of `runs`, the other of `a`, `b` and `c`. */
async function twoBatchesInHand() {
  const begun: string[][] = []
  let end = () => {}
  const task = defineOrderedTask({
    name: 't',
    queue: 'default',
    batchSize: 3,
    run: (payloadsById) => {
      begun.push([...payloadsById.keys()])
      return new Promise<void>((resolve) => (end = resolve))
    },
  })
  const { inFlight, store, keeper, settler } = await bench(task, ['runs'], ['a', 'b', 'c'])
  return { begun, store, inFlight, keeper, endFirst: () => ended(() => end(), settler) }
}

async function ended(end: () => void, settler: Settler): Promise<void> {
  end()
  await new Promise(setImmediate)
  await settler.settled(1_000)
}

/** A workbench with one slot and a claim of each of these groups in hand. */
async function bench(task: AnyTask, ...groups: string[][]) {
  const { claims, ...rest } = await benchBefore(task, 1, groups)
  for (const together of claims) rest.inFlight.accept(together, { sentAt: 0, answeredAt: 0, now: 0 })
  // What there is a slot for begins when the claim that was to follow could be sent.
  await new Promise<void>((resolve) => process.nextTick(resolve))
  return rest
}

/** The same with `slots` slots, before it has accepted the claims. */
async function benchBefore(task: AnyTask, slots: number, groups: readonly string[][]) {
  const harness = await memoryHarness()
  const store = await harness.open()
  await store.open([{ name: 'default', kind: task.kind, order: 'fifo', maxCrashes: 3, dead: {} }])
  const claims: Claim[][] = []
  for (const ids of groups) {
    const jobs = ids.map((id) => ({ id, task: 't', payload: '1', priority: 0, rememberMs: 60_000 }))
    await store.enqueue([{ callId: ids.join(), queue: 'default', jobs }])
    const from = [{ queue: 'default', limit: ids.length }]
    claims.push((await store.claim(from, { worker: 'w', leaseMs: 30_000 })).claims)
  }

  const options = checkOptions({ store: 'memory:', tasks: [task] }, store.traits)
  onTestFinished(() => harness.close())
  let now = 0
  const parts = inFlightOn({ store, options, slots, prefetched: slots, mono: () => now })
  return { ...parts, claims, store, pass: (ms: number) => (now += ms) }
}

describe('a claimed job', () => {
  const started = async (slots: number) => {
    const begun: string[] = []
    const task = defineTask({ name: 't', run: async (_, ctx) => void begun.push(ctx.job.id) })
    const { inFlight, claims, settler } = await benchBefore(task, slots, [['a', 'b']])
    inFlight.accept(claims[0]!, { sentAt: 0, answeredAt: 0, now: 0 })
    const atOnce = [...begun]
    await ended(() => {}, settler)
    return { atOnce, begun }
  }

  it('begins before the next claim is sent if slots are left', async () => {
    expect((await started(3)).atOnce).toEqual(['a', 'b'])
  })

  it('begins after the next claim was sent if it takes the last slot', async () => {
    expect(await started(2)).toEqual({ atOnce: [], begun: ['a', 'b'] })
  })
})

describe('an end whose answer was lost', () => {
  /** A job whose first settle is carried out and not answered. `meanwhile`: before it is sent again. */
  const endedInDoubt = async (run: () => void, meanwhile = (_pass: (ms: number) => void) => {}) => {
    const task = defineTask({ name: 't', run, retry: { max: 3, backoff: () => 60_000 } })
    const { inFlight, claims, store, settler, events, pass } = await benchBefore(task, 1, [['a']])
    const told: object[] = []
    for (const name of ['job.completed', 'job.failed', 'settle.refused'] as const)
      events.on(name, ({ id, ...event }) => told.push({ name, id, ...event }))
    const settle = store.settle.bind(store)
    store.settle = async (items) => {
      store.settle = settle
      await settle(items)
      meanwhile(pass)
      throw new StoreUnavailableError('the connection broke', { inDoubt: true })
    }
    inFlight.accept(claims[0]!, { sentAt: 0, answeredAt: 0, now: 0 })
    await ended(() => {}, settler)
    return told
  }

  it('is reported as it is if its job is gone within its lease', async () => {
    expect(await endedInDoubt(() => {})).toMatchObject([{ name: 'job.completed', id: 'a' }])
  })

  it('is reported as refused, with the doubt, if another may have ended its job', async () => {
    const refused = { name: 'settle.refused', id: 'a', inDoubt: true }
    expect(
      await endedInDoubt(
        () => {},
        (pass) => pass(30_000),
      ),
    ).toMatchObject([{ ...refused, kind: 'complete', answer: 'gone' }])
    const failing = () => {
      throw new Error('no')
    }
    expect(await endedInDoubt(failing)).toMatchObject([{ ...refused, kind: 'retry', answer: 'lost' }])
  })

  it('is a completion if its handler has completed the job inside', async () => {
    const store = new MemoryStore()
    const settle = store.settle.bind(store)
    const complete = async (_: unknown, key: ClaimKey) => {
      await settle([{ ...key, kind: 'complete' }])
      return true
    }
    Object.defineProperty(store, 'transactions', { value: { enqueue: async () => [], complete } })
    store.settle = async () => {
      store.settle = settle
      throw new StoreUnavailableError('the connection broke', { inDoubt: true })
    }
    const task = defineTask({ name: 't', retry: { max: 0 }, run: (_, ctx) => ctx.completeIn({}) })
    const mill = testMillOn(store, { tasks: [task] })
    const told: string[] = []
    const over = new Promise<void>((resolve) => {
      for (const name of ['job.completed', 'job.failed', 'job.buried'] as const)
        mill.on(name, () => {
          told.push(name)
          if (name !== 'job.failed') resolve()
        })
    })
    await mill.enqueue(task)
    await mill.worker().start()
    await over

    expect(told).toEqual(['job.completed'])
  })

  it('was not carried out if the job is still claimed', async () => {
    const task = defineTask({ name: 't', run: () => {} })
    const { inFlight, claims, store, settler, events } = await benchBefore(task, 1, [['a']])
    const told: string[] = []
    events.on('job.completed', ({ id }) => told.push(id))
    const settle = store.settle.bind(store)
    store.settle = async () => {
      store.settle = settle
      throw new StoreUnavailableError('the connection broke', { inDoubt: true })
    }
    inFlight.accept(claims[0]!, { sentAt: 0, answeredAt: 0, now: 0 })
    await ended(() => {}, settler)

    expect(told).toEqual(['a'])
  })
})

describe('a job that waits for a slot', () => {
  it('makes room when it is put back, and the claim loop learns of it even if no slot is in use', async () => {
    let stands = () => {}
    const task = defineTask({ name: 't', run: () => stands() })
    const { inFlight, slots, claims, pass } = await benchBefore(task, 2, [['a', 'b', 'c', 'd']])
    // The turn of the event loop in which the first job begins is too long for another.
    stands = () => pass(2_000)
    inFlight.accept(claims[0]!, { sentAt: 0, answeredAt: 0, now: 0 })
    for (let ticks = 0; ticks < 100; ticks += 1) await new Promise<void>((resolve) => process.nextTick(resolve))
    expect([slots.free, inFlight.free]).toEqual([2, -1])
    const room = slots.freed()
    inFlight.relieve()
    await room

    expect(inFlight.free).toBe(2)
  })

  it('begins when a slot is free', async () => {
    const { begun, endFirst } = await twoInHand()
    expect(begun).toEqual(['runs'])
    await endFirst()

    expect(begun).toEqual(['runs', 'waits'])
  })

  it('is put back uncounted if its lease may have ended meanwhile, because another worker may have run it', async () => {
    const { begun, endFirst, pass, store } = await twoInHand()
    pass(27_000)
    await endFirst()

    expect(begun).toEqual(['runs'])
    expect(await store.records!.get('default', 'waits')).toMatchObject({ state: 'ready', attempt: 1 })
  })

  it('is cancelled without being begun if a cancel came meanwhile', async () => {
    const { begun, endFirst, store, inFlight } = await twoInHand()
    inFlight.executions
      .find(({ leased }) => leased[0]!.claim.id === 'waits')!
      .abort(new JobCancelledError('default', 'waits'))
    await endFirst()

    expect(begun).toEqual(['runs'])
    expect(await store.records!.get('default', 'waits')).toMatchObject({ state: 'cancelled' })
  })

  it('is left out of its batch if it was cancelled or lost meanwhile; the others run', async () => {
    const { begun, endFirst, store, inFlight, keeper } = await twoBatchesInHand()
    const [a, b] = inFlight.executions[1]!.leased
    a!.abort(new JobCancelledError('default', 'a'))
    keeper.forget(b!)
    b!.abort(new LeaseLostError('default', 'b'))
    await endFirst()

    expect(begun).toEqual([['runs'], ['c']])
    expect(await store.records!.get('default', 'a')).toBeUndefined()
    expect(await store.records!.get('default', 'b')).toMatchObject({ state: 'ready', attempt: 1 })
    await endFirst()
    expect(await store.records!.get('default', 'c')).toBeUndefined()
  })
})
