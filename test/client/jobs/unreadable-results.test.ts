/** Results that nobody can read: in each such way whoever waits is told so by a typed error, and never gets undefined. */

import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Codec, defineTask, type Mill, type MillOptions } from 'millrace'
import { testMill as drainedMill } from 'millrace/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent } from '../../next-event.js'
import { type StoreKind, storeKinds, testMill, testMillOn } from '../../test-mill.js'

class Invoice {
  total = 3
}
const cyclic: { self?: unknown } = {}
cyclic.self = cyclic
const hostile = {
  get total(): number {
    throw new Error('not to be looked at')
  },
}

/** What a handler returns that cannot be kept, and a word of the reason. */
const unkeepable: Record<string, readonly [unknown, RegExp]> = {
  'an instance': [new Invoice(), /Invoice/],
  'an address': [new URL('http://a.example'), /URL/],
  'a function': [() => 1, /function/],
  'a function within': [{ a: [() => 1] }, /function/],
  'a symbol': [Symbol('s'), /symbol/i],
  'a cycle': [cyclic, /deep|cycle/],
  'more than maxPayloadBytes': ['x'.repeat(300_000), /takes 300002 bytes/],
  'text that was cut inside a character': ['so 😀'.slice(0, 4), /surrogate|well-formed/],
  'a getter that throws': [hostile, /cannot be read/],
}
const ways = Object.keys(unkeepable)
const invoice = (way: string) => unkeepable[way]![0]
const one = defineTask({ name: 'one', retry: { max: 0 }, run: async (way: string) => invoice(way) })
const many = defineTask({
  name: 'many',
  retry: { max: 0 },
  batch: { size: 5 },
  run: async (given: string[]) => given.map(invoice),
})

describe.each(storeKinds)('a result that cannot be stored, on %s', (kind) => {
  it.each(ways)('%s: waiters, later readers and the record all report it, for a task and a batch task', async (way) => {
    const m = testMill({ tasks: [one, many] }, kind)
    const jobs = [await m.enqueue(one, way), ...(await m.enqueueMany(many, [way, way]))]
    const waiting = m.results(jobs, { timeout: '20s' })
    await m.worker().start()
    const [, reason] = unkeepable[way]!
    const told = { code: 'result-not-kept', why: expect.stringMatching(reason), message: expect.stringMatching(reason) }

    for (const end of await waiting) expect(end).toMatchObject({ status: 'rejected', reason: told })
    for (const job of jobs) {
      await expect(job.result()).rejects.toMatchObject(told)
      expect(await job.record()).toMatchObject({ state: 'completed', error: expect.stringMatching(reason) })
      expect(await job.record()).not.toHaveProperty('result')
    }
  })

  it.each([
    [
      'a codec that throws',
      () => {
        throw new Error('no letters left')
      },
      /no letters left/,
    ],
    ['a codec that makes no payload', () => ({}) as string, /neither text nor bytes/],
  ])('is reported the same way for %s', async (_, odd, reason) => {
    const codec: Codec = {
      name: 'odd',
      encode: (value) => (value === 'odd' ? odd() : JSON.stringify(value)),
      decode: (payload) => JSON.parse(String(payload)),
    }
    const task = defineTask({ name: 'odd', run: () => 'odd' })
    const m = testMill({ tasks: [task], codec }, kind)
    const job = await m.enqueue(task, 1)
    const result = job.result({ timeout: '20s' })
    await m.worker().start()

    await expect(result).rejects.toMatchObject({ code: 'result-not-kept', why: expect.stringMatching(reason) })
  })
})

it.each(ways)('drain() reports %s as a worker does', async (way) => {
  const m = drainedMill({ tasks: [one, many] })
  const jobs = [await m.enqueue(one, way), await m.enqueue(many, way)]
  await m.drain()

  for (const job of jobs)
    await expect(job.result()).rejects.toMatchObject({
      code: 'result-not-kept',
      why: expect.stringMatching(unkeepable[way]![1]),
    })
  await m.close()
})

const key = () => randomBytes(32).toString('base64')
const [first, second] = [key(), key()]
const withKey = (current: string, keys: Record<string, string>) => ({ seal: { current, keys } })
const reversed = (decode: Codec['decode']): Codec => ({
  name: 'reversed',
  encode: (value) => [...JSON.stringify(value)].reverse().join(''),
  decode,
})

describe.each(storeKinds)('a stored result that a mill cannot read, on %s', (kind) => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'millrace-results-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const task = defineTask({ name: 'total', run: async () => ({ total: 3 }) })

  /** Makes mills on one store. */
  function millsOn(of: StoreKind): (options: Partial<MillOptions>) => Mill {
    const memory = new MemoryStore()
    return (options) =>
      of === 'memory'
        ? testMillOn(memory, { tasks: [task], ...options })
        : testMill({ store: `sqlite:${join(folder, 'jobs.db')}`, tasks: [task], ...options })
  }

  it.each<[string, Partial<MillOptions>, Partial<MillOptions>, RegExp]>([
    ['another codec', { codec: reversed(() => 1) }, {}, /stored by codec 'reversed'/],
    ['a seal, and no key', withKey('k1', { k1: first }), {}, /sealed by key 'k1'/],
    ['a key that is lost', withKey('k1', { k1: first }), withKey('k2', { k2: second }), /sealed by key 'k1'/],
    ['another key of that id', withKey('k1', { k1: first }), withKey('k1', { k1: second }), /does not open/],
    [
      'a codec that throws',
      { codec: reversed(() => 1) },
      {
        codec: reversed(() => {
          throw new TypeError('bad bytes')
        }),
      },
      /bad bytes/,
    ],
    [
      'a missing seal if only sealed payloads are accepted',
      {},
      { seal: { current: 'k1', keys: { k1: first }, only: true } },
      /not sealed/,
    ],
  ])('is reported for %s', async (_, writes, reads, reason) => {
    const mills = millsOn(kind)
    const writer = mills(writes)
    const job = await writer.enqueue(task, {}, { id: 'x' })
    const reader = mills(reads).job(task, 'x')
    const waiting = reader.result({ timeout: '20s' })
    const told = { code: 'codec-failed', message: expect.stringMatching(reason) }
    const refused = expect(waiting).rejects.toMatchObject(told)
    const completed = nextEvent(writer, 'job.completed')
    await writer.worker().start()
    await completed

    await refused
    await expect(reader.result()).rejects.toMatchObject(told)
    expect(await reader.record()).toMatchObject({ state: 'completed', error: expect.stringMatching(reason) })
    expect(job.id).toBe('x')
  })
})
