/** The standstills that can be provoked: a scene on each kind of store, and the table of what keeps a job in it. */

import { defineOrderedTask, defineTask, type JobHandle, type Mill, type MillOptions, millrace } from 'millrace'
import type { Claim, Store } from 'millrace/store'
import { onTestFinished } from 'vitest'
import { poll } from '#src/store-testing/servers/poll.js'
import { testMill } from '../../test-mill.js'
import { lentPostgresAddress } from '../../worker-postgres.js'
import { workerRedis } from '../../worker-redis.js'

type Kind = 'memory' | 'sqlite' | 'postgres' | 'redis'
export const kinds: readonly Kind[] = ['memory', 'sqlite', 'postgres', 'redis']

const send = defineTask({ name: 'send', queue: 'mail', run: (_to: string) => {} })
const bill = defineTask({ name: 'bill', queue: 'mail', run: (_to: string) => {} })
const sum = defineTask({ name: 'sum', queue: 'mail', joins: { part: bill }, run: (_of: string) => {} })
const sync = defineOrderedTask({ name: 'sync', queue: 'orders', id: ({ id }: { id: string }) => id, run: () => {} })

/** The same tasks for a command, which loads a configuration of its own. */
export const configFile = `
import { defineOrderedTask, defineTask } from 'millrace'

const bill = defineTask({ name: 'bill', queue: 'mail', run: () => {} })
const tasks = [
  defineTask({ name: 'send', queue: 'mail', run: () => {} }),
  bill,
  defineTask({ name: 'sum', queue: 'mail', joins: { part: bill }, run: () => {} }),
  defineOrderedTask({ name: 'sync', queue: 'orders', id: ({ id }) => id, run: () => {} }),
]

export default { queues: JSON.parse(process.env.QUEUES), tasks }
`

/** A worker of another machine, as far as the store knows. */
const worker = 'worker-1'

export class Scene {
  readonly mill: Mill
  readonly store: Store
  /** What a command needs in its environment to find the same store. */
  readonly env: Readonly<Record<string, string>>

  private constructor(mill: Mill, store: Store, env: Readonly<Record<string, string>>) {
    this.mill = mill
    this.store = store
    this.env = env
  }

  static async on(kind: Kind, queues: Standstill['queues'] = {}): Promise<Scene> {
    const all = { mail: {}, orders: { ordered: true }, ...queues }
    const options = { queues: all, tasks: [send, bill, sum, sync] } as Omit<MillOptions, 'store'>
    const namespace = `explain_${Math.random().toString(36).slice(2)}`
    const isRedis = kind === 'redis'
    const server = isRedis ? (await workerRedis()).url : kind === 'postgres' ? await lentPostgresAddress() : undefined
    const mill =
      server === undefined
        ? testMill(options, kind as 'sqlite')
        : onServer(server, { ...options, ...(isRedis && { namespace }) })
    await mill.storedQueues()
    // Opens the queues.
    await mill.enqueue(send, 'nobody', { id: 'first' })
    await mill.enqueue(sync, { id: 'first' })
    const store = await mill.adminParts.connect()
    await store.records!.delete('mail', 'all')
    await store.records!.delete('orders', 'all')
    return new Scene(mill, store, {
      ...{ QUEUES: JSON.stringify(all), MILLRACE_STORE: server ?? mill.store.text },
      ...(isRedis && { MILLRACE_NAMESPACE: namespace }),
    })
  }

  /** A worker that takes these tasks, with so many of its slots in use. */
  async serve({
    tasks = ['send', 'bill', 'sum', 'sync'],
    running = 0,
    state = 'running' as 'running' | 'stopping',
  } = {}) {
    const about = { host: 'elsewhere', boot: 'b', pidns: 'p', pid: 1, ticks: 1, startedAt: Date.now() }
    const slots = { queues: ['mail', 'orders'], concurrency: 2, running, taskNames: tasks, state }
    await this.store.workers!.beat({ id: worker, ...about, ...slots }, 60_000)
  }

  async claim(queue: string, limit = 1): Promise<Claim[]> {
    const from = queue === 'orders' ? [0, 1, 2, 3].map((shard) => ({ queue, shard, limit })) : [{ queue, limit }]
    return (await this.store.claim(from, { worker, leaseMs: 60_000 })).claims
  }

  send(id: string, options: object = {}): Promise<JobHandle<unknown, unknown>> {
    return this.mill.enqueue(send, id, { id, ...options }) as never
  }
}

function onServer(store: string, options: Omit<MillOptions, 'store'>): Mill {
  const mill = millrace({ store, ...options }) as Mill
  onTestFinished(() => mill.close())
  return mill
}

export interface Standstill {
  readonly queues?: Readonly<Record<string, object>>
  /** The worker, unless the row is about workers. */
  readonly isUnserved?: true
  /** The job that waits. */
  provoke(scene: Scene): Promise<JobHandle<unknown, unknown>>
  readonly why: string
  readonly text: RegExp
  /** What `jobs list` shows of it, if not the reason in other words. */
  readonly listed?: RegExp
  /** The metric that tells it, if it is not a reason of `millrace_queue_standstill`. */
  readonly metric?: string
}

/** By what is said of each. */
export const standstills: Readonly<Record<string, Standstill>> = {
  'a paused queue': {
    async provoke(scene) {
      await scene.mill.queue('mail').pause()
      return scene.send('a')
    },
    why: 'paused',
    text: /^its queue is paused; `millrace queues resume mail`/,
  },
  'a paused group': {
    async provoke(scene) {
      await scene.mill.queue('mail').pause({ group: 'acme' })
      return scene.send('a', { group: 'acme' })
    },
    why: 'paused',
    text: /^its group is paused; `millrace queues resume mail --group acme`/,
  },
  'a held queue': {
    async provoke(scene) {
      await scene.send('b')
      const [claim] = await scene.claim('mail')
      await scene.store.settle([{ ...claim!, kind: 'complete', hold: { of: 'queue', forMs: 600_000 } }])
      return scene.send('a')
    },
    why: 'held',
    text: /^its queue is held for another (?:10m|9m \d+s)$/,
  },
  'a held group': {
    async provoke(scene) {
      await scene.send('b', { group: 'acme' })
      const [claim] = await scene.claim('mail')
      await scene.store.settle([{ ...claim!, kind: 'complete', hold: { of: 'group', forMs: 600_000 } }])
      return scene.send('a', { group: 'acme' })
    },
    why: 'held',
    text: /^its group 'acme' is held for another (?:10m|9m \d+s)$/,
  },
  'a full throttle': {
    queues: { mail: { throttle: { limit: 1, window: '1h' } } },
    async provoke(scene) {
      await scene.send('b')
      await scene.claim('mail')
      return scene.send('a')
    },
    why: 'throttled',
    text: /^the throttle permits the next start in (?:1h|59m \d+s|1h \d+s): 1 of 1 starts in 1h are used$/,
  },
  'a full throttle of its group': {
    queues: { mail: { throttle: { limit: 1, window: '1h', by: 'group' } } },
    async provoke(scene) {
      await scene.send('b', { group: 'acme' })
      await scene.claim('mail')
      return scene.send('a', { group: 'acme' })
    },
    why: 'throttled',
    text: /: 1 of 1 starts in 1h are used by group 'acme'$/,
  },
  'a throttle that another queue has used up': {
    queues: {
      mail: { throttle: { limit: 1, window: '1h', scope: 'api' } },
      orders: { ordered: true, throttle: { limit: 1, window: '1h', scope: 'api' } },
    },
    async provoke(scene) {
      await scene.mill.enqueue(sync, { id: 'o' })
      await scene.claim('orders')
      return scene.send('a')
    },
    why: 'throttled',
    text: /: 1 of 1 starts in 1h are used with queue orders$/,
  },
  'a full queue': {
    queues: { mail: { maxRunning: 1 } },
    async provoke(scene) {
      await scene.send('b')
      await scene.claim('mail')
      return scene.send('a')
    },
    why: 'max-running',
    text: /^1 of at most 1 job run in queue 'mail'(?:: b)?$/,
  },
  'a full group': {
    queues: { mail: { maxRunning: { perGroup: 1 } } },
    async provoke(scene) {
      await scene.send('b', { group: 'acme' })
      await scene.claim('mail')
      return scene.send('a', { group: 'acme' })
    },
    why: 'max-running',
    text: /^1 of at most 1 job of group 'acme' run in queue 'mail'(?:: b)?$/,
  },
  'a shard in use': {
    queues: { orders: { ordered: true, exclusive: 'shard', shards: 1 } },
    async provoke(scene) {
      await scene.mill.enqueue(sync, { id: 'o' })
      await scene.claim('orders')
      return (await scene.mill.enqueue(sync, { id: 'p' })) as never
    },
    why: 'exclusive',
    text: /^a job of its shard runs/,
  },
  'a reshard that waits for a running job': {
    queues: { orders: { ordered: true, shards: 2 } },
    async provoke(scene) {
      await scene.mill.enqueue(sync, { id: 'o' })
      await scene.claim('orders')
      const job = await scene.mill.enqueue(sync, { id: 'p' })
      await scene.store.records!.reshard('orders', 4)
      return job as never
    },
    why: 'resharding',
    text: /move to 4 shards, and none begins until all have; `millrace queues reshard orders 4`/,
  },
  'a queue without a worker': {
    isUnserved: true,
    provoke: (scene) => scene.send('a'),
    why: 'no-worker',
    text: /^no worker takes jobs of queue 'mail'; start one, such as by `millrace work --queues mail`$/,
  },
  'a worker that is stopping': {
    isUnserved: true,
    async provoke(scene) {
      await scene.serve({ state: 'stopping' })
      return scene.send('a')
    },
    why: 'no-worker',
    text: /^no worker takes jobs of queue 'mail': 1 worker is stopping; start one/,
  },
  'a worker without its task': {
    isUnserved: true,
    async provoke(scene) {
      await scene.serve({ tasks: ['bill'] })
      return scene.send('a')
    },
    why: 'no-task',
    text: /^the worker of its queue does not know the task 'send'; start one that does$/,
  },
  'workers without a free slot': {
    isUnserved: true,
    async provoke(scene) {
      await scene.serve({ running: 2 })
      await scene.send('b')
      await scene.claim('mail')
      return scene.send('a')
    },
    why: 'slots-full',
    text: /^all 2 slots of the worker that can take it are in use$/,
    // Of a busy queue it would stand at every job.
    listed: / ready /,
  },
  'a job whose worker died': {
    async provoke(scene) {
      const job = await scene.send('a')
      const claims = await scene.claim('mail')
      await scene.store.workers!.gone(claims, worker)
      await scene.serve()
      return job
    },
    why: 'suspect',
    text: /^its worker died while it held the job, so it waits until a worker can run it alone$/,
    listed: / suspect/,
  },
  'a job that has failed': {
    async provoke(scene) {
      const job = await scene.send('a')
      const [claim] = await scene.claim('mail')
      await scene.store.settle([{ ...claim!, kind: 'retry', delayMs: 600_000, error: 'Error: no route\n    at x' }])
      return job
    },
    why: 'retry',
    text: /^its attempt 2 is due in (?:10m|9m \d+s); the last failed: Error: no route$/,
    listed: /due in .* Error: no route/,
    metric: 'millrace_queue_retries{queue="mail"}',
  },
  'a job whose time to begin is over': {
    async provoke(scene) {
      const job = await scene.send('a', { expiresIn: 1 })
      const isOver = async () => ((await job.explain()).some(({ why }) => why === 'expired') ? true : undefined)
      await poll(isOver, { what: 'expired', withinMs: 10_000, everyMs: 1 })
      return job
    },
    why: 'expired',
    text: /^its time to begin is over: the next claim on its queue cancels it$/,
  },
  'a delayed job': {
    provoke: (scene) => scene.send('a', { delay: '10m' }),
    why: 'delayed',
    text: /^it is due in (?:10m|9m \d+s)$/,
    listed: /due in /,
    metric: 'millrace_jobs{queue="mail",state="scheduled"}',
  },
  'a job that sleeps': {
    async provoke(scene) {
      const job = await scene.send('a')
      const [claim] = await scene.claim('mail')
      await scene.store.steps!.keep(claim!, { name: 'cool-off', kind: 'sleep', forMs: 600_000 }, 60_000)
      await scene.store.settle([{ ...claim!, kind: 'release', delayMs: 600_000 }])
      return job
    },
    why: 'asleep',
    text: /^it sleeps in 'cool-off', and is due in (?:10m|9m \d+s)$/,
    listed: /due in /,
    metric: 'millrace_jobs{queue="mail",state="scheduled"}',
  },
  'a job that waits for a signal': {
    async provoke(scene) {
      const job = await scene.send('a')
      const [claim] = await scene.claim('mail')
      await scene.store.settle([{ ...claim!, kind: 'wait', signal: 'approved', withinMs: 600_000 }])
      return job
    },
    why: 'signal',
    text: /^it waits for the signal 'approved', for at most another (?:10m|9m \d+s)$/,
    listed: /for signal 'approved'/,
    metric: 'millrace_jobs{queue="mail",state="waiting"}',
  },
  'a job that waits for others': {
    provoke: (scene) => scene.mill.enqueue(sum, 'a', { id: 'a', after: { part: 'b' }, within: '1h' }) as never,
    why: 'joins',
    text: /^it waits for other jobs: 0 of 1 in 'part' have ended$/,
    listed: / waiting /,
    metric: 'millrace_jobs{queue="mail",state="waiting"}',
  },
  'a job that a worker has reserved': {
    async provoke(scene) {
      const job = await scene.send('a')
      await scene.claim('mail')
      return job
    },
    why: 'reserved',
    text: /^worker worker-1.* holds it, and has not begun it yet$/,
    listed: / reserved/,
    metric: 'millrace_jobs{queue="mail",state="running"}',
  },
  'a job behind others': {
    async provoke(scene) {
      await scene.send('b')
      await scene.send('c')
      return scene.send('a')
    },
    why: 'behind',
    text: /^2 jobs are before it/,
    listed: / ready /,
    metric: 'millrace_jobs{queue="mail",state="ready"}',
  },
  'the next job': {
    provoke: (scene) => scene.send('a'),
    why: 'next',
    text: /^nothing keeps it: the next free slot takes it$/,
    listed: / ready /,
    metric: 'millrace_jobs{queue="mail",state="ready"}',
  },
}
