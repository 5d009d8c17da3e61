/** Limited queues: what a worker knows of them, and that it keeps up with rules that change while it runs. */
import { defineTask, type QueueOptions } from 'millrace'
import { describe, expect, it, vi } from 'vitest'
import type { EventMap } from '#src/core/events.js'
import { throttleOf } from '#src/core/queue/throttle-options.js'
import { checkOptions } from '#src/mill/options/mill-options.js'
import type { Claim } from '#src/stores/contract/claim.js'
import type { StoredQueue } from '#src/stores/contract/queue-settings.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { HeldGroups, LimitedQueues } from '#src/workers/claims/limited-queues.js'
import { Punctuality } from '#src/workers/claims/punctuality.js'
import { nextEvent, recorded } from '../../next-event.js'
import { claimOf } from '../../runtime/claim-of.js'
import { testMill, testMillOn } from '../../test-mill.js'

const settings = { name: 'q', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
const task = defineTask({ name: 't', queue: 'q', run: async () => {} })

async function stored(window: number): Promise<readonly StoredQueue[]> {
  return new MemoryStore().open([{ ...settings, throttle: throttleOf('q', { limit: 1, window }) }])
}

describe('rules that change', () => {
  it('to a shorter window leave the next handler less time to begin', async () => {
    const limited = new LimitedQueues(await stored(40_000))
    const { registry } = checkOptions({ store: 'memory:', tasks: [task], queues: { q: {} } }, new MemoryStore().traits)
    const punctuality = new Punctuality(limited, registry)
    const leftMs = () => {
      const { from, to } = punctuality.startOf('q', { sentAt: 0, answeredAt: 0, now: 0 })!
      return Math.round(to - from)
    }

    // 2.5 % of the window, less what a timer is inexact by.
    expect(leftMs()).toBe(999)
    limited.know(await stored(4_000))
    expect(leftMs()).toBe(99)
  })

  it('of one group to a shorter window leave every handler of the queue less time to begin', async () => {
    const store = new MemoryStore()
    await store.open([{ ...settings, throttle: throttleOf('q', { limit: 1, window: 40_000, by: 'group' }) }])
    const limited = new LimitedQueues(await store.records.queues())
    expect(limited.spreadOf('q')).toBe(1_000)
    await store.throttles.setRate('q', 'x', throttleOf('q', { limit: 1, window: 4_000 }).rules)

    limited.know(await store.records.queues())
    expect(limited.spreadOf('q')).toBe(100)
  })

  it.each([
    ['are looked for by the worker of a throttled queue', { limit: 1, window: '1h' }, 1],
    ['are not looked for by another', undefined, 0],
  ] as const)('%s', async (_, throttle, looks) => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { tasks: [task], queues: { q: throttle === undefined ? {} : { throttle } } })
    const queues = vi.spyOn(store.records, 'queues')
    await mill.worker().start()

    expect(queues).toHaveBeenCalledTimes(looks)
  })
})

describe('holds of a group by jobs of this worker', () => {
  /** What the worker knows, on a clock that `at` sets. */
  function holding() {
    const clock = { now: 0 }
    const held = new HeldGroups(() => clock.now, true)
    const [a, b, waiting] = ['a', 'b', 'waiting'].map((id) => claimOf({ id, group: 'x' })) as [Claim, Claim, Claim]
    return { clock, held, a, b, isHeld: () => held.areHolding(waiting, 0, clock.now) }
  }

  it('last although the end of another job, which would hold it too, is refused', () => {
    const { clock, held, a, b, isHeld } = holding()
    held.onVerdict(a, { holdMs: 60_000 })
    held.onVerdict(a, { holdMs: 60_000 }, 'ok')
    clock.now = 1_000
    held.onVerdict(b, { holdMs: 5_000 })
    held.onVerdict(b, { holdMs: 5_000 }, 'lost')
    expect(isHeld()).toBe(true)
    // Its process has settled it, and told of the answer alone.
    held.onVerdict(b, { holdMs: 5_000 }, 'lost')
    expect(isHeld()).toBe(true)
    clock.now = 60_000
    expect(isHeld()).toBe(false)
  })

  it('begin with the verdict, and end if the store refuses it, but not one that was answered meanwhile', () => {
    const { held, a, b, isHeld } = holding()
    held.onVerdict(a, { holdMs: 60_000 })
    expect(isHeld()).toBe(true)
    held.onVerdict(a, { holdMs: 60_000 }, 'lost')
    expect(isHeld()).toBe(false)
    held.onVerdict(a, { holdMs: 60_000 })
    held.onVerdict(b, { holdMs: 60_000 })
    held.onVerdict(b, { holdMs: 60_000 }, 'ok')
    held.onVerdict(a, { holdMs: 60_000 }, 'gone')
    expect(isHeld()).toBe(true)
  })
})

const byGroup: QueueOptions = { throttle: { limit: 1_000, window: '1s', by: 'group' } }
const perGroup: QueueOptions = { maxRunning: { perGroup: 3 } }

/** What the worker says of jobs of the queue, some of them given with these groups. */
async function toldOf(queue: QueueOptions, jobs: readonly (string | undefined)[], group?: () => string) {
  const fetch = defineTask({ name: 'fetch', queue: 'q', ...(group && { group }), run: async () => {} })
  const m = testMill({ tasks: [fetch], queues: { q: queue } })
  const told: readonly EventMap['group.missing'][] = recorded(m, 'group.missing')
  let left = jobs.length
  const ended = nextEvent(m, 'job.completed', () => --left === 0)
  for (const of of jobs) await m.enqueue(fetch, undefined, of === undefined ? {} : { group: of })
  await m.worker().start()
  await ended
  return told
}

it.each([
  ['throttle', byGroup],
  ['maxRunning', perGroup],
] as const)(
  'if jobs have no group and a %s applies to each group, the worker reports it once',
  async (limit, queue) => {
    expect(await toldOf(queue, [undefined, undefined])).toEqual([{ queue: 'q', task: 'fetch', limit }])
  },
)

it('limits by group cause no report for a task with groups, even if one of its jobs has none', async () => {
  expect(await toldOf(byGroup, [undefined], () => '')).toEqual([])
})

it('limits by group cause no report for jobs that are enqueued with a group', async () => {
  expect(await toldOf(byGroup, ['a.example', 'b.example'])).toEqual([])
})

it('limits of the whole queue cause no report for jobs without a group', async () => {
  expect(await toldOf({ throttle: { limit: 1_000, window: '1s' }, maxRunning: 3 }, [undefined])).toEqual([])
})

it('the log of the mill names the remedy', async () => {
  const said: string[] = []
  const note = (message: string) => void said.push(message)
  const logger = { debug() {}, info() {}, warn: note, error: note }
  const fetch = defineTask({ name: 'fetch', queue: 'q', run: async () => {} })
  const m = testMill({ tasks: [fetch], queues: { q: byGroup }, logger })
  const ended = nextEvent(m, 'job.completed', () => true)
  await m.enqueue(fetch, undefined)
  await m.worker().start()
  await ended
  // On a busy machine it may also say that a job started late.
  expect(said.filter((message) => /^the throttle/.test(message))).toEqual([
    "the throttle of queue 'q' holds for each group, but jobs of task 'fetch' have none: they all share the limit of one group. Give the task a `group`, or leave out `by: 'group'`",
  ])
})
