/** Queues: their defaults, and which options are refused with which words. */
import { describe, expect, it } from 'vitest'
import { ConfigError } from '#src/core/errors.js'
import { type Queue, queueOf, queueOptionsSchema } from '#src/core/queue/queue.js'
import { parsed } from '#src/core/values/option-check.js'
import { refuseOtherForm } from '#src/stores/rules/queue-form.js'
import { issuesOf } from '../issues-of.js'

function queue(options: unknown): Queue {
  return queueOf('q', parsed(queueOptionsSchema, options, "queue 'q'"))
}

/** The issues of options that are refused, as `path: message`. */
const mistakes = (options: unknown) => issuesOf(() => queue(options))

describe('a queue', () => {
  it('without options has the documented defaults', () => {
    expect(queue({})).toEqual({
      name: 'q',
      weight: 10,
      claimSize: 500,
      iterations: 1,
      longPollMs: 5_000,
      leaseMs: 30_000,
      renewLease: true,
      order: 'fifo',
      ordered: false,
      fifo: false,
      shards: 1,
      exclusive: 'id',
      shardOrder: 'lag',
      maxPending: undefined,
      maxCrashes: undefined,
      throttle: undefined,
      maxRunning: undefined,
      results: { ageMs: 3_600_000, count: 1_000 },
      dead: undefined,
    })
  })

  it('keeps its options, with durations in milliseconds', () => {
    const given = {
      weight: 1,
      claimSize: 1,
      iterations: 5,
      longPoll: '20s',
      lease: '10m',
      order: 'lifo',
      maxPending: 7,
    }

    expect(queue({ ...given, maxRunning: { perGroup: 2 }, throttle: { limit: 1, window: '1s' } })).toMatchObject({
      weight: 1,
      claimSize: 1,
      iterations: 5,
      longPollMs: 20_000,
      leaseMs: 600_000,
      renewLease: true,
      order: 'lifo',
      maxPending: 7,
      maxRunning: { perGroup: 2 },
      throttle: { scope: 'q', by: 'queue', rules: [{ limit: 1, windowMs: 1_000, spreadMs: 50, moderate: false }] },
    })
  })

  it('that is ordered has five shards, one id at a time, the longest wait first', () => {
    const expected = { ordered: true, shards: 5, exclusive: 'id', shardOrder: 'lag' }

    expect(queue({ ordered: true })).toMatchObject(expected)
    expect(queueOf('q', parsed(queueOptionsSchema, {}, 'a queue'), { ordered: true, isolated: false })).toMatchObject(
      expected,
    )
    expect(
      queueOf('q', parsed(queueOptionsSchema, { ordered: false }, 'a queue'), { ordered: true, isolated: false })
        .ordered,
    ).toBe(false)
  })

  it('that is ordered keeps its options', () => {
    const shardOrder = (shards: readonly { shard: number }[]) => shards.map(({ shard }) => shard)
    const given = { ordered: true, shards: 24, exclusive: 'shard', shardOrder }

    expect(queue(given)).toMatchObject(given)
    expect(queue({ ordered: true, shardOrder: 'sequential' })).toMatchObject({ shardOrder: 'sequential' })
  })

  it('without lease renewal claims ten jobs for ten minutes', () => {
    expect(queue({ renewLease: false })).toMatchObject({ claimSize: 10, leaseMs: 600_000, renewLease: false })
    expect(queue({ renewLease: false, claimSize: 3, lease: '1m' })).toMatchObject({ claimSize: 3, leaseMs: 60_000 })
  })

  it.each([
    ['none', 'none'],
    ['untilDeleted', {}],
    [{}, {}],
    [{ age: '2d' }, { ageMs: 172_800_000 }],
    [{ count: 0 }, { count: 0 }],
    [
      { age: 5, count: 6 },
      { ageMs: 5, count: 6 },
    ],
  ])('keeps results by %j as %j, and that a job completed without one', (results, expected) => {
    const kept = expected === 'none' ? expected : { ...(expected as object), ends: true }
    expect(queue({ retention: { results } }).results).toEqual(kept)
  })

  it('keeps dead jobs until they are deleted unless configured otherwise', () => {
    expect(queue({ retention: { dead: { count: 9 } } }).dead).toEqual({ count: 9 })
    expect(queue({ retention: { dead: 'untilDeleted' } }).dead).toEqual({})
  })
})

describe('wrong options', () => {
  const form = "must be a duration such as '500ms', '30s', '5m', '1h30m' or '3d', or a whole number of milliseconds"
  const table: [unknown, string][] = [
    [{ weight: 0 }, 'weight: must be a whole number from 1 to 100; got 0'],
    [{ weight: 101 }, 'weight: must be a whole number from 1 to 100; got 101'],
    [{ weight: '5' }, 'weight: must be a whole number from 1 to 100; got "5"'],
    [{ weight: 1.5 }, 'weight: must be a whole number from 1 to 100; got 1.5'],
    [{ weight: Number.NaN }, 'weight: must be a whole number from 1 to 100; got NaN'],
    [{ claimSize: 501 }, 'claimSize: must be a whole number from 1 to 500; got 501'],
    [{ iterations: 0 }, 'iterations: must be a whole number from 1 to 1000000; got 0'],
    [{ longPoll: 0 }, 'longPoll: must be at least 1 ms; got 0'],
    [{ lease: '2s' }, 'lease: must be at least 3000 ms; got "2s"'],
    [{ lease: 'long' }, `lease: ${form}; got "long"`],
    [{ order: 'random' }, `order: must be 'fifo' or 'lifo'; got "random"`],
    [{ ordered: 'yes' }, 'ordered: must be boolean; got "yes"'],
    [{ shards: 0 }, 'shards: must be a whole number from 1 to 1024; got 0'],
    [{ shards: 1_025 }, 'shards: must be a whole number from 1 to 1024; got 1025'],
    [{ exclusive: 'queue' }, `exclusive: must be 'id' or 'shard'; got "queue"`],
    [{ shardOrder: 'random' }, `shardOrder: must be 'lag', 'sequential' or a function; got "random"`],
    [{ shardOrder: [1, 0] }, "shardOrder: must be 'lag', 'sequential' or a function; got [object Array]"],
    [{ maxPending: 0 }, 'maxPending: must be a whole number of at least 1; got 0'],
    [{ maxCrashes: 0 }, 'maxCrashes: must be a whole number of at least 1; got 0'],
    [{ throttle: { limit: 0, window: '1s' } }, 'throttle.limit: must be a whole number from 1 to 1000000; got 0'],
    [{ throttle: { limit: 1, window: 'x' } }, `throttle.window: ${form}; got "x"`],
    [{ throttle: { limit: 1 } }, 'throttle.window: is missing'],
    [
      { throttle: { limit: 1, window: 1, burst: 2 } },
      'throttle.burst: is not an option; check its spelling: there are limit, window, moderate, elastic, by, scope',
    ],
    [{ throttle: { limit: 1, window: 1, by: 'host' } }, `throttle.by: must be 'queue' or 'group'; got "host"`],
    [{ throttle: [{ limit: 1, window: 'x' }] }, `throttle.0.window: ${form}; got "x"`],
    [{ throttle: 5 }, `throttle: must be an object, with limit, window, moderate, elastic, by, scope; got 5`],
    [{ maxRunning: 0 }, 'maxRunning: must be a whole number of at least 1; got 0'],
    [{ maxRunning: { perGroup: 'x' } }, 'maxRunning.perGroup: must be a whole number of at least 1; got "x"'],
    [{ retention: { results: { age: 'x' } } }, `retention.results.age: ${form}; got "x"`],
    [
      { retention: { results: { ages: 1 } } },
      'retention.results.ages: is not an option; check its spelling: there are age, count. Probably `age` is meant',
    ],
    [
      { retention: { results: 'ever' } },
      `retention.results: must be 'untilDeleted' or 'none' or an object; got "ever"`,
    ],
    [{ retention: { dead: 'none' } }, `retention.dead: must be 'untilDeleted' or an object; got "none"`],
    [
      { priority: 5 },
      'priority: is not an option; check its spelling: there are weight, groupWeights, claimSize, iterations, longPoll, lease, renewLease, order, ordered, fifo, shards, exclusive, shardOrder, maxPending, maxCrashes, throttle, maxRunning, retention. It is an option of enqueue',
    ],
  ]

  it.each(table)('%j are refused with their path', (options, message) => {
    expect(mistakes(options)).toEqual([message])
  })

  it('are reported all at once', () => {
    const wrong = { weight: 0, lease: 1, throttle: { limit: 'a', window: 'b' }, maxrunning: 1, shard: 2 }

    expect(mistakes(wrong).map((line) => line.split(':')[0])).toEqual([
      'weight',
      'lease',
      'throttle.limit',
      'throttle.window',
      'maxrunning',
      'shard',
    ])
    expect(() => queue(wrong)).toThrow(ConfigError)
    expect(() => queue(wrong)).toThrow(/^queue 'q' is not valid:\n {2}weight: .*\n {2}lease: /)
  })
})

describe('a stored queue', () => {
  const form = { kind: 'ordered', order: 'fifo' } as const

  it('refuses another `exclusive`, and says how to move its jobs', () => {
    expect(() => refuseOtherForm('orders', form, { ...form, exclusive: 'shard' })).toThrow(
      expect.objectContaining({
        code: 'config-conflict',
        message: expect.stringMatching(/"id".*"shard".*`millrace queues move orders <new>`/),
      }),
    )
    expect(() => refuseOtherForm('orders', form, { ...form, exclusive: 'id' })).not.toThrow()
  })
})
