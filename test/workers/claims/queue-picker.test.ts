import type { Candidate, Selector, StoredQueue } from 'millrace'
import type { Claimed, Wait } from 'millrace/store'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { queueOf, queueOptionsSchema } from '#src/core/queue/queue.js'
import { LimitedQueues } from '#src/workers/claims/limited-queues.js'
import { denialsIn, QueuePicker } from '#src/workers/claims/queue-picker.js'
import { givenSurroundings } from '../../runtime/given-surroundings.js'
import { storedQueue } from '../../stored-queue.js'

const queue = (name: string, iterations = 1) => queueOf(name, v.parse(queueOptionsSchema, { iterations }))
const granted = (name: string): Claimed => ({
  now: 0,
  queue: name,
  claims: [],
  crashed: [],
  buried: [],
  waits: [],
  more: false,
})
const nothing: Claimed = { now: 0, claims: [], crashed: [], buried: [], waits: [], more: false }
const emptied = (name: string): Claimed => ({ ...granted(name), waits: [{ queue: name, reason: 'empty' }] })
const draw = (
  selector: Selector,
  queues: ReturnType<typeof queue>[],
  isForOthers = (_: string) => false,
  entriesOf = (_: string) => 1,
) => new QueuePicker(givenSurroundings(), queues, selector, new LimitedQueues([]), { isForOthers, entriesOf })
const inOrder: Selector = (queues) => queues.map(({ name }) => name)
const onlyFirst: Selector = (queues) => [queues[0]!.name]

describe('the draw of a queue', () => {
  it('asks each queue once until one grants or it is time to look again', () => {
    const subject = draw(onlyFirst, [queue('a'), queue('b')])
    expect(subject.next()).toEqual(['a'])
    subject.answered(['a'], nothing)
    expect(subject.next()).toEqual(['b'])
    subject.answered(['b'], nothing)
    expect(subject.next()).toEqual([])
    expect(subject.tried).toEqual(['a', 'b'])

    subject.sweep()
    expect(subject.next()).toEqual(['a'])
    subject.answered(['a'], nothing)
    subject.answered(['b'], granted('b'))
    expect(subject.next()).toEqual(['a'])
  })

  it('does not ask a queue whose last jobs were granted before another grants or the worker has rested', () => {
    const subject = draw(inOrder, [queue('a', 3), queue('b')])
    subject.answered(['a'], emptied('a'))
    expect(subject.next()).toEqual(['b'])
    subject.answered(['b'], granted('b'))
    expect(subject.next()).toEqual(['a', 'b'])

    subject.answered(['a', 'b'], emptied('a'))
    subject.answered(['b'], nothing)
    expect(subject.next()).toEqual([])
    expect(subject.tried).toEqual(['a', 'b'])
    subject.heard(['a'])
    expect(subject.next()).toEqual(['a'])
  })

  it('asks a queue of several shards again if it granted the last jobs of one', () => {
    const subject = draw(
      inOrder,
      [queue('a')],
      () => false,
      () => 2,
    )
    subject.answered([], { ...granted('a'), waits: [{ queue: 'a', shard: 0, reason: 'empty' }] })
    expect(subject.next()).toEqual(['a'])
  })

  it('stays on a queue for its iterations as long as it grants', () => {
    const subject = draw(inOrder, [queue('a'), queue('b', 3)])
    subject.answered(['a', 'b'], granted('b'))
    expect(subject.next()).toEqual(['b'])
    subject.answered(['b'], granted('b'))
    expect(subject.next()).toEqual(['b'])
    subject.answered(['b'], granted('b'))
    expect(subject.next()).toEqual(['a', 'b'])

    subject.answered(['a', 'b'], granted('b'))
    subject.answered(['b'], nothing)
    expect(subject.next()).toEqual(['a'])
  })

  it('leaves a queue with a job put back for others, until the worker has rested or another queue has granted', () => {
    const subject = draw(inOrder, [queue('a', 3), queue('b')])
    subject.answered(['a', 'b'], granted('a'))
    subject.heard(['a'])
    subject.passOver('a')
    expect(subject.next()).toEqual(['b'])
    subject.answered(['b'], nothing)
    expect(subject.next()).toEqual([])
    expect(subject.tried).toEqual(['a', 'b'])

    subject.heard(['a'])
    expect(subject.next()).toEqual(['a'])
    subject.passOver('a')
    subject.heard(['b'])
    subject.answered(['b'], granted('b'))
    expect(subject.next()).toEqual(['a', 'b'])
  })

  it('asks queues that belong to others only when its own were found empty, or when they were rung', () => {
    const subject = draw(inOrder, [queue('others'), queue('a'), queue('b')], (name) => name === 'others')
    expect(subject.next()).toEqual(['a', 'b'])
    subject.heard(['others'])
    expect(subject.next()).toEqual(['others', 'a', 'b'])
    subject.answered(['others', 'a'], granted('a'))
    expect(subject.next()).toEqual(['a', 'b'])
    subject.answered(['a', 'b'], nothing)
    expect(subject.next()).toEqual(['others'])
    subject.answered(['others'], granted('others'))

    expect(subject.next()).toEqual(['a', 'b'])
  })

  it('knows the ages of heads before its first claim if it was given them', () => {
    const ages: unknown[] = []
    const subject = draw(
      (queues) => {
        ages.push(...queues.map(({ headAgeMs }) => headAgeMs))
        return queues.map(({ name }) => name)
      },
      [queue('a'), queue('b')],
    )
    subject.onHeads([{ queue: 'a' }, { queue: 'b', ageMs: 50 }])
    subject.next()

    expect(ages).toEqual([undefined, 50])
  })

  it('skips the queues that a selector leaves out, and rests when it names none', () => {
    const subject = draw(
      (queues) => queues.filter(({ name }) => name !== 'b').map(({ name }) => name),
      [queue('a'), queue('b')],
    )
    subject.answered(['a'], nothing)
    expect(subject.next()).toEqual([])
    expect(subject.tried).toEqual(['a'])
  })

  it('asks at most sixteen in one trip, then the others', () => {
    const names = Array.from({ length: 20 }, (_, i) => `q${i}`)
    const subject = draw(
      inOrder,
      names.map((name) => queue(name)),
    )
    expect(subject.next()).toEqual(names.slice(0, 16))
    subject.answered(names.slice(0, 16), nothing)
    expect(subject.next()).toEqual(names.slice(16))
  })

  it('asks rung queues first, and checks at most sixteen queues again, those asked longest ago first', () => {
    const names = Array.from({ length: 20 }, (_, i) => `q${i}`)
    const subject = draw(
      inOrder,
      names.map((name) => queue(name)),
    )
    for (const name of names) subject.answered([name], nothing)
    expect(subject.next()).toEqual([])
    subject.heard(['q19'])
    expect(subject.next()).toEqual(['q19'])
    subject.sweep()
    expect(subject.next()).toEqual(['q19', ...names.slice(0, 15)])
    subject.answered(['q19', ...names.slice(0, 16)], nothing)
    subject.sweep()
    expect(subject.next()).toEqual(expect.arrayContaining(['q16', 'q17', 'q18']))
    expect(subject.next()).toHaveLength(16)
  })

  it('drops repeated names and gives the selector the age of known heads', () => {
    const seen: (readonly Candidate[])[] = []
    const twice: Selector = (queues) => {
      seen.push(queues)
      return ['a', 'a', 'b']
    }
    const subject = draw(twice, [queue('a'), queue('b')])
    subject.answered(['a'], { ...granted('a'), heads: [{ queue: 'a', ageMs: 5 }, { queue: 'b' }] })
    expect(subject.next()).toEqual(['a', 'b'])
    expect(seen[0]).toEqual([
      { name: 'a', weight: 10, headAgeMs: 5 },
      { name: 'b', weight: 10 },
    ])
  })

  describe('over queues that need more than one trip', () => {
    const names = ['a', 'b', 'c', 'd', 'plain']
    function costly() {
      let now = 0
      const subject = new QueuePicker(
        givenSurroundings({ mono: () => now }),
        names.map((name) => queue(name)),
        inOrder,
        new LimitedQueues([]),
        { isForOthers: () => false, entriesOf: (name) => (name === 'plain' ? 1 : 6) },
      )
      const pass = (ms: number) => {
        now += ms
      }
      return { subject, pass }
    }

    it('skips sharded queues for 100 ms after they were found empty, whatever is granted', () => {
      const { subject, pass } = costly()
      subject.answered(['plain', 'b', 'c', 'd'], nothing)
      pass(60)
      subject.answered(['a'], granted('a'))
      expect(subject.next()).toEqual(['a', 'plain'])
      expect(subject.tried).toEqual(['b', 'c', 'd'])

      // No grant is needed for that, only time: the slots may have been full so long.
      pass(39)
      expect(subject.next()).toEqual(['a', 'plain'])
      pass(1)
      expect(subject.next()).toEqual(names)
    })

    it('asks a rung queue at once, and rests on all that were found empty', () => {
      const { subject } = costly()
      subject.answered(names.slice(1), nothing)
      subject.answered(['a'], granted('a'))
      subject.heard(['c'])
      expect(subject.next()).toEqual(['c', 'a', 'plain'])
      subject.answered(['c', 'a', 'plain'], nothing)
      expect(subject.next()).toEqual([])
      expect(subject.tried.toSorted()).toEqual(names)
    })

    it('takes them to be empty as long as a rest on them brought no news', () => {
      const { subject, pass } = costly()
      subject.answered(['a'], granted('a'))
      subject.answered(names, nothing)
      expect(subject.next()).toEqual([])
      pass(60_000)
      subject.rested()
      pass(60_000)
      expect(subject.next()).toEqual([])
      subject.rested()
      subject.heard(['b'])
      pass(10)
      subject.answered(['b'], granted('b'))
      expect(subject.next()).toEqual(['b', 'plain'])
      pass(90)
      expect(subject.next()).toEqual(names)
    })

    it('asks all of them after a grant if the rest before it was cut short', () => {
      const { subject, pass } = costly()
      subject.answered(names, nothing)
      pass(60_000)
      subject.heard(['b'])
      subject.answered(['b'], granted('b'))
      expect(subject.next()).toEqual(names)
    })

    it('asks all of them again on request', () => {
      const { subject } = costly()
      subject.answered(names, nothing)
      subject.again()
      expect(subject.next()).toEqual(names)
    })

    it('asks all of them again after a grant if one trip is enough', () => {
      const { subject } = costly()
      subject.answered(['b', 'c', 'plain'], nothing)
      subject.answered(['a'], granted('a'))
      expect(subject.next()).toEqual(names)
    })
  })

  it('refuses a name that the worker does not serve', () => {
    expect(() => draw(() => ['z'], [queue('a')]).next()).toThrow("'z', which this worker does not serve; it serves a")
  })

  describe('over queues whose limits deny ready jobs', () => {
    /** Of `paced` the limit is one for all its jobs, of `lanes` one for each group. */
    function limited(iterations = 1) {
      let now = 0
      const rules = [{ limit: 1, windowMs: 1, moderate: false }]
      const stored = (name: string, by: 'queue' | 'group') =>
        storedQueue(name, { throttle: { scope: name, by, rules } })
      const subject = new QueuePicker(
        givenSurroundings({ mono: () => now }),
        ['paced', 'lanes', 'other'].map((name) => queue(name, iterations)),
        inOrder,
        new LimitedQueues([stored('paced', 'queue'), stored('lanes', 'group')]),
        { isForOthers: () => false, entriesOf: () => 1 },
      )
      const pass = (ms: number) => {
        now += ms
      }
      const denied = (name: string, forMs = 60_000): Claimed['waits'] => [{ queue: name, reason: 'throttled', forMs }]
      return { subject, pass, denied }
    }

    it.each([1, 5])('skips a queue that granted and denied at once until there is news of it (iterations %i)', (n) => {
      for (const name of ['paced', 'lanes']) {
        const { subject, denied } = limited(n)
        subject.answered([], { ...granted(name), waits: denied(name) })
        expect(subject.next()).not.toContain(name)
        expect(subject.tried).toEqual([name])
        subject.heard([name])
        expect(subject.next()[0]).toBe(name)
      }
    })

    it('skips a queue until it opens, whatever else is granted, or until its rules may have changed', () => {
      const { subject, pass, denied } = limited()
      subject.answered([], { ...granted('other'), waits: denied('paced', 50) })
      expect(subject.next()).toEqual(['lanes', 'other'])
      pass(49)
      subject.answered([], granted('other'))
      expect(subject.next()).toEqual(['lanes', 'other'])
      pass(1)
      subject.answered([], granted('other'))
      expect(subject.next()).toEqual(['paced', 'lanes', 'other'])

      subject.answered([], { ...granted('other'), waits: denied('paced', 3_600_000) })
      pass(4_999)
      subject.answered([], granted('other'))
      expect(subject.next()).toEqual(['lanes', 'other'])
      pass(1)
      subject.answered([], granted('other'))
      expect(subject.next()).toEqual(['paced', 'lanes', 'other'])
    })

    it('asks a queue with limited groups again after each grant, because other groups may have jobs', () => {
      const { subject, denied } = limited()
      subject.answered([], { ...granted('other'), waits: denied('lanes') })
      expect(subject.next()).toEqual(['paced', 'lanes', 'other'])
      subject.answered([], { ...granted('lanes'), waits: denied('lanes') })
      expect(subject.next()).toEqual(['paced', 'other'])
      subject.answered([], granted('other'))
      expect(subject.next()).toEqual(['paced', 'lanes', 'other'])
    })

    it('does not check a denied queue after a rest before it opens, because a ring would have come', () => {
      const { subject, pass, denied } = limited()
      subject.answered(['other'], nothing)
      subject.answered(['paced', 'lanes'], {
        ...nothing,
        waits: [...denied('paced', 20_000), ...denied('lanes', 9_000)],
      })
      expect(subject.next()).toEqual([])
      pass(5_000)
      subject.rested()
      subject.sweep()
      expect(subject.next()).toEqual(['other'])
      pass(5_000)
      subject.sweep()
      expect(subject.next()).toEqual(['lanes', 'other'])
      pass(10_000)
      subject.sweep()
      expect(subject.next()).toEqual(['paced', 'lanes', 'other'])
    })

    it('rests on a queue with one denied shard, even if others were not asked', () => {
      const { subject, denied } = limited()
      subject.answered([], { ...nothing, waits: denied('paced').map((one) => ({ ...one, shard: 3 })) })

      expect(subject.tried).toEqual(['paced'])
      expect(subject.next()).toEqual(['lanes', 'other'])
    })
  })
})

const stored = (limits: Partial<StoredQueue>) => storedQueue('q', limits)
const throttled = (by: 'queue' | 'group') =>
  stored({ throttle: { scope: 'q', by, rules: [{ limit: 1, windowMs: 1, moderate: false }] } })
const denials = (waits: readonly Wait[], queue: StoredQueue, shards = 1) =>
  denialsIn({ waits: [...waits] }, new LimitedQueues([queue]), { entriesOf: () => shards })
const wait = (reason: Wait['reason'], more: Partial<Wait> = {}): Wait => ({ queue: 'q', reason, ...more })

describe('a queue is denied', () => {
  it('if it is throttled, until it opens, or full; and not if it is empty, paused or has suspects', () => {
    expect(denials([wait('throttled', { forMs: 5 })], throttled('group'))).toEqual([{ queue: 'q', forMs: 5 }])
    expect(denials([wait('full', { forMs: 5 })], stored({ maxRunning: 1 }))).toEqual([{ queue: 'q' }])
    for (const reason of ['empty', 'scheduled', 'paused', 'suspect'] as const)
      expect(denials([wait(reason, { forMs: 5 })], throttled('queue'))).toEqual([])
  })

  it('by a limit for the whole queue as soon as one shard is', () => {
    const waits = [wait('throttled', { shard: 1, forMs: 9 }), wait('throttled', { shard: 0, forMs: 5 })]

    expect(denials(waits, throttled('queue'), 4)).toEqual([{ queue: 'q', forMs: 5 }])
    expect(denials([wait('full', { shard: 1 })], stored({ maxRunning: 1 }), 4)).toEqual([{ queue: 'q' }])
  })

  it('by limits of groups or of its shards only when every shard has answered', () => {
    const waits = [wait('throttled', { shard: 1, forMs: 9 }), wait('suspect', { shard: 1 })]
    expect(denials(waits, throttled('group'), 2)).toEqual([])
    expect(denials([...waits, wait('empty', { shard: 0 })], throttled('group'), 2)).toEqual([{ queue: 'q', forMs: 9 }])

    const exclusive = stored({ maxRunning: 9, exclusive: 'shard' })
    expect(denials([wait('full', { shard: 1 })], exclusive, 2)).toEqual([])
  })
})
