/** Jobs without a group where limits hold for each group: the worker says once that they share one limit. */
import { defineTask, type QueueOptions } from 'millrace'
import { expect, it } from 'vitest'
import type { EventMap } from '#src/core/events.js'
import { nextEvent, recorded } from '../next-event.js'
import { testMill } from '../test-mill.js'

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
  expect(said).toEqual([
    "the throttle of queue 'q' holds for each group, but jobs of task 'fetch' have none: they all share the limit of one group. Give the task a `group`, or leave out `by: 'group'`",
  ])
})
