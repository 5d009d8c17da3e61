/** Followed jobs: jobs of every fate, and for each a feed that begins at a random moment of its life. */

import { randomUUID } from 'node:crypto'
import { bury, defineTask, type JobEvent, type JobHandle, type Mill, millrace, snooze } from 'millrace'
import { onTestFinished } from 'vitest'
import { seededRandom } from '../../seeded-random.js'
import { type StoreKind, testMill } from '../../test-mill.js'
import { workerRedis } from '../../worker-redis.js'

const fates = ['result', 'nothing', 'retried', 'dead', 'buried', 'cancelled', 'cancelledEarly', 'snoozed'] as const
type Fate = (typeof fates)[number]

/** What a feed must say at the end. */
const stateOf: Readonly<Record<Fate, 'completed' | 'dead' | 'cancelled'>> = {
  result: 'completed',
  nothing: 'completed',
  retried: 'completed',
  snoozed: 'completed',
  dead: 'dead',
  buried: 'dead',
  cancelled: 'cancelled',
  cancelledEarly: 'cancelled',
}

const napped = new Set<string>()

export const fatal = defineTask({
  name: 'fatal',
  retry: { max: 1, backoff: () => 0 },
  async run({ fate }: { fate: Fate }, ctx) {
    ctx.log(`attempt ${ctx.job.attempt}`)
    ctx.progress(0.5)
    if (fate === 'dead' || (fate === 'retried' && ctx.job.attempt === 1)) throw new Error('not this time')
    if (fate === 'buried') return bury('of no use')
    if (fate === 'snoozed' && !napped.has(ctx.job.id)) {
      napped.add(ctx.job.id)
      return snooze(10)
    }
    if (fate === 'cancelled')
      await new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
    return fate === 'result' ? { fate } : undefined
  },
})

const queues = { default: { lease: '3s' } } as const

/** A mill on a store of this kind, fresh for this test. A cancel reaches a running job within a third of the lease. */
export async function followedMill(kind: StoreKind | 'redis'): Promise<Mill> {
  if (kind !== 'redis') return testMill({ tasks: [fatal], queues }, kind)
  const mill = millrace({ store: (await workerRedis()).url, namespace: `n${randomUUID()}`, tasks: [fatal], queues })
  onTestFinished(() => mill.close())
  return mill
}

/** The events from which the moments are drawn. */
const moments = ['job.enqueued', 'job.started', 'job.failed', 'job.completed', 'job.buried', 'job.cancelled'] as const

/**
 * Enqueues jobs and runs them. Each feed begins at the n-th event of the mill, with a random n; those whose event never
 * comes begin after the last job. Returns what is wrong with the feeds, a line for each, and how many began before the end
 * of their job.
 */
export async function followJobs(
  mill: Mill,
  count: number,
  seed: number,
): Promise<{ wrong: string[]; inTime: number }> {
  const random = seededRandom(seed)
  const handles = await mill.enqueueMany(
    Array.from({ length: count }, (_, i) => [fatal, { fate: fates[i % fates.length]! }] as const),
  )
  const beginsAt = handles.map(() => Math.floor(random() * count * 3))
  const heard = new Map<number, Promise<JobEvent[]>>()
  let now = 0
  const begin = () => {
    for (const [i, at] of beginsAt.entries()) if (at <= now && !heard.has(i)) heard.set(i, allOf(handles[i]!))
  }
  const offs = moments.map((name) =>
    mill.on(name, () => {
      now += 1
      begin()
    }),
  )
  const cancelling = [...handles.entries()].filter(([i]) => fates[i % fates.length]!.startsWith('cancelled'))
  const early = cancelling.filter(([i]) => fates[i % fates.length] === 'cancelledEarly')
  await Promise.all(early.map(([, handle]) => handle.cancel()))
  begin()
  const started = new Set<string>()
  mill.on('job.started', ({ id }) => {
    const cancelled = cancelling.find(([, handle]) => handle.id === id)
    if (cancelled !== undefined && !started.has(id)) void cancelled[1].cancel()
    started.add(id)
  })
  const ended = new Promise<void>((resolve) => {
    let left = count - early.length
    const end = () => {
      left -= 1
      if (left === 0) resolve()
    }
    mill.on('job.completed', end)
    mill.on('job.buried', end)
    mill.on('job.cancelled', end)
  })
  await mill.worker({ concurrency: 20 }).start()
  await ended
  now = Number.POSITIVE_INFINITY
  begin()
  for (const off of offs) off()
  const wrong: string[] = []
  let inTime = 0
  for (const [i, events] of heard) {
    const all = await events
    const fate = fates[i % fates.length]!
    const wasAlive = all.some((event) => event.type === 'job' && !(event.job.state in isEnd))
    if (wasAlive) inTime += 1
    const mistake = mistakeIn(await events, wasAlive, stateOf[fate])
    if (mistake !== undefined) wrong.push(`job ${i} (${fate}): ${mistake}`)
  }
  if (heard.size !== count) wrong.push(`${heard.size} feeds of ${count}`)
  return { wrong, inTime }
}

const isEnd = { completed: true, dead: true, cancelled: true }

async function allOf(handle: JobHandle): Promise<JobEvent[]> {
  const events: JobEvent[] = []
  for await (const event of handle.events()) events.push(event)
  return events
}

function mistakeIn(events: readonly JobEvent[], wasAlive: boolean, state: string): string | undefined {
  const ends = events.filter(({ type }) => type === 'end')
  const last = events.at(-1)
  if (ends.length !== 1 || last?.type !== 'end') return `${ends.length} ends, last ${last?.type}`
  if (last.state === state) return undefined
  // It had ended before, and nothing is kept of it.
  return !wasAlive && last.state === undefined ? undefined : `is ${last.state}, not ${state}`
}
