/** The same jobs, run by `drain()` and by a worker: each attempt must go the same way, and each job end alike. */

import {
  type BatchContext,
  bury,
  cancel,
  defineOrderedTask,
  defineTask,
  hold,
  type JobContext,
  type JobRecord,
  type Mill,
  type OrderedContext,
  snooze,
  UnrecoverableError,
} from 'millrace'
import { testMill as drainedMill } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../seeded-random.js'
import { testMill } from '../test-mill.js'

const steps = [
  'result',
  'nothing',
  'fail',
  'nullish',
  'hostile',
  'unrecoverable',
  'snooze',
  'bury',
  'cancel',
  'throttle',
  'unstorable',
  'child',
  'keyed',
  'cancelled',
] as const
type Step = (typeof steps)[number]
interface Script {
  readonly id: string
  /** The n-th run takes the n-th step, the last one for all that follow. */
  readonly steps: readonly Step[]
}

const retry = { max: 2, backoff: () => 0 }
const hostile = new Proxy(
  {},
  {
    get() {
      throw new Error('not to be looked at')
    },
  },
)

/** The tasks of one side, and what is told to their hooks. */
function scene() {
  const told: string[] = []
  const runs = new Map<string, number>()
  let mill: Mill
  const child = defineTask({ name: 'child', queue: 'children', run: () => 'grown' })

  async function taken({ id, steps }: Script, queue: string, enqueue: (key?: string) => Promise<unknown>) {
    const job = `${queue} ${id}`
    const run = runs.get(job) ?? 0
    runs.set(job, run + 1)
    const step = steps[Math.min(run, steps.length - 1)]!
    switch (step) {
      case 'result':
        return { run }
      case 'nothing':
        return undefined
      case 'fail':
        throw new Error(`run ${run} has failed`)
      case 'nullish':
        throw null
      case 'hostile':
        throw hostile
      case 'unrecoverable':
        throw new UnrecoverableError('never again')
      case 'snooze':
        return snooze(1)
      case 'bury':
        return bury('as told')
      case 'cancel':
        return cancel('as told')
      case 'throttle':
        return hold(1)
      case 'unstorable':
        return () => 'a function'
      case 'child':
        await enqueue()
        throw new Error('after its child')
      case 'keyed':
        await enqueue('key')
        return 'with a child'
      case 'cancelled':
        await mill.queue(queue).jobs.cancel([id])
        throw new Error('after its cancel')
    }
  }

  const single = defineTask({
    name: 'single',
    queue: 'single',
    retry,
    async run(script: Script, ctx: JobContext) {
      ctx.log(`attempt ${ctx.job.attempt} after ${JSON.stringify(ctx.lastCheckpoint)}`)
      ctx.progress(0.5, script.id)
      await ctx.checkpoint({ at: ctx.job.attempt })
      await ctx.fields.set({ attempt: ctx.job.attempt })
      return taken(script, 'single', (key) => ctx.enqueue(child, script.id, key === undefined ? {} : { key }))
    },
    onExhausted: ({ job, error }) => void told.push(`${job.id}: ${textOf(error)}`),
  })
  const many = defineTask({
    name: 'many',
    queue: 'many',
    batch: { size: 3 },
    retry,
    async run(scripts: Script[], ctx: BatchContext) {
      const results: unknown[] = []
      for (const [i, script] of scripts.entries())
        results.push(
          await taken(script, 'many', (key) => ctx.enqueue(child, script.id, { parent: i, ...(key && { key }) })).catch(
            (error) => ctx.fail(i, error),
          ),
        )
      return results
    },
    onExhausted: ({ job, error }) => void told.push(`${job.id}: ${textOf(error)}`),
  })
  const ordered = defineOrderedTask({
    name: 'ordered',
    batchSize: 2,
    id: ({ id }: Script) => id,
    score: () => 1,
    retry,
    async run(scriptsById: ReadonlyMap<string, readonly Script[]>, ctx: OrderedContext) {
      for (const [id, [script]] of scriptsById)
        await taken(script!, 'ordered', (key) => ctx.enqueue(child, id, { parent: id, ...(key && { key }) })).catch(
          (error) => ctx.fail(id, error),
        )
    },
    onExhausted: (payloads) => void told.push(...payloads.map(({ id, error }) => `${id}: ${textOf(error)}`)),
  })
  const tasks = [single, many, ordered, child]
  const kept = { retention: { results: 'untilDeleted' as const } }
  const queues = { ordered: { ordered: true, shards: 1 }, single: kept, many: kept, children: kept }
  return {
    tasks,
    single,
    many,
    ordered,
    told,
    options: { tasks, queues, formatError: textOf },
    begin: (one: Mill) => (mill = one),
  }
}

function textOf(error: unknown): string {
  try {
    return String(error)
  } catch {
    return 'hostile'
  }
}

const names = ['single', 'many', 'ordered', 'children'] as const
const eventNames = [
  'job.started',
  'job.completed',
  'job.failed',
  'job.buried',
  'job.released',
  'job.cancelled',
  'result.dropped',
  'settle.refused',
] as const

function scripts(seed: number): Script[] {
  const random = seededRandom(seed)
  return Array.from({ length: 40 }, (_, i) => ({
    id: `job-${i}`,
    steps: [
      ...Array.from({ length: Math.floor(random() * 4) }, () => steps[Math.floor(random() * steps.length)]!),
      'result',
    ],
  }))
}

async function enqueueAll(mill: Mill, { single, many, ordered }: ReturnType<typeof scene>, given: readonly Script[]) {
  const byId = ({ id }: Script) => ({ id })
  await mill.enqueueMany(single, given, byId)
  await mill.enqueueMany(many, given, byId)
  await mill.enqueueMany(ordered, given)
}

/** What is told of when and where it ran. Progress is stored by the next beat: a short run ends before, on a quick machine. */
const ofThisRun = new Set([
  'id',
  'createdAt',
  'updatedAt',
  'runAt',
  'startedAt',
  'finishedAt',
  'worker',
  'host',
  'pid',
  'fence',
  'parent',
  'progress',
])
const lasting = ({ failures = [], ...record }: Partial<JobRecord>) => ({
  ...Object.fromEntries(Object.entries(record).filter(([name]) => !ofThisRun.has(name))),
  failures: failures.map(({ at: _, ...failure }) => failure),
})

async function endOf(mill: Mill, told: readonly string[], heard: readonly string[]) {
  const jobs = new Map<string, unknown>()
  // The ids of children follow from when their parents were created.
  for (const name of names)
    for (const job of (await mill.queue(name).jobs.list({ limit: 200 })).jobs)
      jobs.set(name === 'children' ? `child ${JSON.stringify(job.parent)}` : `${name} ${job.id}`, lasting(job))
  return {
    jobs: new Map([...jobs].sort(([a], [b]) => (a < b ? -1 : 1))),
    told: [...told].sort(),
    heard: [...heard].sort(),
  }
}

function listen(mill: Mill): string[] {
  const heard: string[] = []
  for (const name of eventNames)
    mill.on(name, (event) => {
      const { queue, id, attempt, reason, error } = { attempt: 0, reason: '', error: '', ...event }
      // A worker puts back what it has claimed ahead.
      if (reason === 'held') return
      const job = queue === 'children' ? 'child' : id
      heard.push(`${queue} ${job} ${name} ${attempt} ${reason} ${textOf(error)}`)
    })
  return heard
}

const isAtRest = async (mill: Mill) =>
  (await Promise.all(names.map((name) => mill.queue(name).depth()))).every(
    ({ ready, running, scheduled }) => ready + running + scheduled === 0,
  )

describe('jobs run by drain()', () => {
  it.each([1, 2, 3])('end like jobs run by a worker (seed %i)', async (seed) => {
    const given = scripts(seed)
    const drained = scene()
    const test = drainedMill(drained.options)
    drained.begin(test)
    const heardByDrain = listen(test)
    await enqueueAll(test, drained, given)
    do {
      await test.drain()
      test.advance('1m')
    } while (!(await isAtRest(test)))

    const worked = scene()
    const mill = testMill(worked.options)
    worked.begin(mill)
    const heardByWorker = listen(mill)
    await enqueueAll(mill, worked, given)
    await mill.worker().start()
    await expect.poll(() => isAtRest(mill), { timeout: 20_000 }).toBe(true)

    const [byDrain, byWorker] = [
      await endOf(test, drained.told, heardByDrain),
      await endOf(mill, worked.told, heardByWorker),
    ]
    expect(byDrain.heard.length).toBeGreaterThan(200)
    expect(byDrain).toEqual(byWorker)
  })
})
