import { defineTask, hold, jsonCodec, UnrecoverableError } from 'millrace'
import type { Claim, SettleAnswer, SettleItem } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { ClosedError, InvalidArgumentError } from '#src/core/errors.js'
import { Events } from '#src/core/events.js'
import { Packing } from '#src/core/packing/packing.js'
import { Settler, settlementOf } from '#src/runtime/run/settlement.js'
import { verdictOnFailure, verdictOnReturn } from '#src/runtime/run/verdict.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { claimOf } from './claim-of.js'
import { givenSurroundings } from './given-surroundings.js'

const claim = claimOf({ fence: 7 })

function settled(of: Partial<Claim>, holdMs: number, canHold = true) {
  const rules = {
    packing: new Packing(jsonCodec),
    formatError: String,
    maxResultBytes: 1,
    maxDelayMs: 60_000,
    canHold,
    now: () => 0,
    resultDropped: () => {},
  }
  return settlementOf({ ...claim, ...of }, { kind: 'release', delayMs: 0, reason: 'held', holdMs }, {}, rules)
}

const released = { queue: 'q', id: 'a', fence: 7, kind: 'release' }

it('a job that asks for a pause holds its group, or else its queue, at most as long as the store allows', () => {
  expect(settled({ group: 'g' }, 5_000)).toEqual({ ...released, delayMs: 0, hold: { of: 'group', forMs: 5_000 } })
  expect(settled({}, 5_000)).toEqual({ ...released, delayMs: 0, hold: { of: 'queue', forMs: 5_000 } })
  expect(settled({}, 90_000)).toEqual({ ...released, delayMs: 0, hold: { of: 'queue', forMs: 60_000 } })
})

it('a job that asks for a pause waits alone in a store without holds: otherwise it would run again at once', () => {
  expect(settled({ group: 'g' }, 5_000, false)).toEqual({ ...released, delayMs: 5_000 })
})

const item = (id: string): SettleItem => ({ queue: 'q', id, fence: 1, kind: 'complete' })

function settlerOn(settle: MemoryStore['settle']) {
  const store = new MemoryStore()
  store.settle = settle
  const events = new Events()
  return {
    events,
    settler: new Settler(givenSurroundings({ events, random: () => 0, mono: () => performance.now() }), store),
  }
}

it('sends the settles of one tick together, at most a batch at once', async () => {
  const sizes: number[] = []
  const { settler } = settlerOn(async (items) => {
    sizes.push(items.length)
    return items.map(() => 'ok' as const)
  })
  const answers: unknown[] = []
  for (let i = 0; i < 300; i += 1) settler.settle(item(`${i}`), (answer) => answers.push(answer))
  await settler.settled(5_000)

  expect(sizes).toEqual([250, 50])
  expect(answers).toHaveLength(300)
})

it('retries while the store is away', async () => {
  let calls = 0
  const { settler } = settlerOn(async () => {
    calls += 1
    if (calls < 4) throw new Error('away')
    return ['ok']
  })
  const answered = new Promise<SettleAnswer | undefined>((resolve) => settler.settle(item('a'), resolve))

  expect(await answered).toBe('ok')
  expect(calls).toBe(4)
})

it('does not put off the end of a sleep, a wait or a hold by the time that the store was away', async () => {
  let now = 0
  const sent: SettleItem[][] = []
  const store = new MemoryStore()
  store.settle = async (items) => {
    sent.push([...items])
    now += 600
    if (sent.length === 1) throw new Error('away')
    return items.map(() => 'ok' as const)
  }
  const settler = new Settler(givenSurroundings({ random: () => 0, mono: () => now }), store)
  const key = { queue: 'q', id: 'a', fence: 1 }
  const sleeps = [1_000, 100, 0].map((delayMs) => ({ ...key, kind: 'release', delayMs }) as const)
  const waits = [{ withinMs: 1_000 }, { withinMs: 100 }, {}].map(
    (within) => ({ ...key, kind: 'wait', signal: 'go', ...within }) as const,
  )
  const holds = [1_000, 100].map((forMs) => ({ ...key, kind: 'complete', hold: { of: 'queue', forMs } }) as const)
  const items = [...sleeps, ...waits, ...holds]
  await Promise.all(items.map((item) => new Promise((resolve) => settler.settle(item, resolve))))

  expect(sent[0]).toEqual(items)
  expect(
    sent[1]!.map((item) =>
      'delayMs' in item ? item.delayMs : 'withinMs' in item ? item.withinMs : (item.hold?.forMs ?? 'no bound'),
    ),
  ).toEqual([400, 1, 0, 400, 0, 'no bound', 400, 1])
})

it('reports a settle as given up after a permanent store error, so that nobody keeps its lease', async () => {
  const { settler, events } = settlerOn(() => Promise.reject(new ClosedError('the store')))
  const failed: unknown[] = []
  events.on('store.failed', ({ retryMs }) => failed.push(retryMs))
  const answered = new Promise<SettleAnswer | undefined>((resolve) => settler.settle(item('a'), resolve))

  expect(await answered).toBeUndefined()
  expect(failed).toEqual([undefined])
})

it('gives up after its deadline if the store does not answer', async () => {
  const { settler } = settlerOn(() => Promise.reject(new Error('away')))
  const answered = new Promise<SettleAnswer | undefined>((resolve) => settler.settle(item('a'), resolve))
  await settler.settled(5)

  expect(await answered).toBeUndefined()
})

it('passes on the answers of sound queues if another copy of the package reports which are damaged', async () => {
  const partly = { code: 'store-corrupt', answers: ['ok', undefined] }
  const { settler } = settlerOn(() => Promise.reject(Object.assign(new Error('damaged'), partly)))
  const answers: unknown[] = []
  for (const id of ['a', 'b']) settler.settle(item(id), (answer) => answers.push(answer))
  await settler.settled(5_000)

  expect(answers).toEqual(['ok', undefined])
})

it('moves the start of a run back by the delay of its settle', async () => {
  let now = 0
  const told: (number | undefined)[] = []
  const store = new MemoryStore()
  store.settle = async (items) => {
    told.push(...items.map((one) => ('run' in one ? one.run?.startedMs : undefined)))
    now += 400
    if (told.length === 1) throw new Error('away')
    return ['ok']
  }
  const settler = new Settler(givenSurroundings({ random: () => 0, mono: () => now }), store)
  const run = { startedMs: 50, host: 'h', pid: 7 }
  const answered = new Promise((resolve) => settler.settle({ ...item('a'), kind: 'bury', run }, resolve))

  expect(await answered).toBe('ok')
  expect(told).toEqual([50, 450])
})

const ignore = () => {}
const random = () => 0.5

describe('the verdict on a failure', () => {
  it('is another run while attempts are left, and burial at the last', () => {
    const task = defineTask({ name: 't', retry: { max: 2, backoff: (failures) => failures * 10 } })
    const verdicts = [1, 2, 3].map((attempt) => verdictOnFailure(task, new Error('x'), attempt, random, ignore))

    expect(verdicts).toMatchObject([
      { kind: 'retry', delayMs: 10, last: false },
      { kind: 'retry', delayMs: 20, last: false },
      { kind: 'retry', last: true, reason: 'max-retries' },
    ])
  })

  it('is burial at once for an unrecoverable error, even if no attempt is left', () => {
    const task = defineTask({ name: 't', retry: { max: 0 } })
    expect(verdictOnFailure(task, new UnrecoverableError('x'), 1, random, ignore)).toMatchObject({
      last: true,
      reason: 'unrecoverable',
    })
    expect(verdictOnFailure(task, new Error('x'), 1, random, ignore)).toMatchObject({
      last: true,
      reason: 'no-retries',
    })
  })

  it('is another run with the default backoff if retry.when or the backoff throws, which is reported', () => {
    const broken = () => {
      throw new Error('broken')
    }
    const task = defineTask({ name: 't', retry: { when: broken, backoff: broken } })
    const hooks: string[] = []

    expect(verdictOnFailure(task, new Error('x'), 1, random, (hook) => hooks.push(hook))).toMatchObject({
      kind: 'retry',
      delayMs: 30_000,
      last: false,
    })
    expect(hooks).toEqual(['retry.when', 'retry.backoff'])
  })
})

describe('the verdict on a returned value', () => {
  it('is a release to the old place for hold(), with the duration of the hold on its group or queue', () => {
    expect(verdictOnReturn(hold('30s'))).toEqual({
      kind: 'release',
      delayMs: 0,
      reason: 'held',
      holdMs: 30_000,
    })
  })

  it('is none for an outcome of an unknown kind, from a later version or a stand-in', () => {
    const later = { [Symbol.for('millrace.outcome')]: { kind: 'later' } }
    const standIn: object = new Proxy({}, { has: () => true, get: () => standIn })
    for (const returned of [later, standIn]) expect(() => verdictOnReturn(returned)).toThrow(InvalidArgumentError)
  })
})
