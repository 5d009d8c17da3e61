/**
 * Wrong uses, each of which must fail to compile: tsc itself fails where one of these lines has no error.
 * Checked by `npm run types`; never run.
 */

import { defineOrderedTask, defineTask, exponential, type Middleware, millrace, type Selector } from 'millrace'
import type { Store } from 'millrace/store'
import { z } from 'zod'

const email = defineTask({ name: 'email', input: z.object({ to: z.string() }), run: async ({ to }) => ({ id: to }) })
const mill = millrace({ store: 'memory:', queues: { a: {}, high: {} }, tasks: [email] })
const job = await mill.enqueue(email, { to: 'a' })

// Payloads
// @ts-expect-error 1: a field of the wrong type
await mill.enqueue(email, { to: 1 })
// @ts-expect-error 2: a field is missing
await mill.enqueue(email, {})
// @ts-expect-error 3: a field too many
await mill.enqueue(email, { to: 'a', cc: 'b' })
// @ts-expect-error 4: no input at all
await mill.enqueue(email)
// @ts-expect-error 5: one wrong input among many
await mill.enqueueMany(email, [{ to: 'a' }, { to: null }])
// @ts-expect-error 6: the second argument is a list
await mill.enqueueMany(email, { to: 'a' })

// Tasks
// @ts-expect-error 7: a task is named by its value, not by text
await mill.enqueue('email', { to: 'a' })
// @ts-expect-error 8: a task needs a name
defineTask({ run: async () => {} })
// @ts-expect-error 9: an input that is no Standard Schema
defineTask({ name: 't', input: { to: 'string' } })
// @ts-expect-error 10: an unknown option
defineTask({ name: 't', retries: 3 })
// @ts-expect-error 11: a backoff is a function
defineTask({ name: 't', retry: { backoff: 'exponential' } })
// @ts-expect-error 12: the handler's input is what the schema hands on
defineTask({ name: 't', input: z.object({ n: z.number() }), run: ({ n }: { n: string }) => n })
// @ts-expect-error 13: a field the input does not have
defineTask({ name: 't', input: z.object({ n: z.number() }), run: (input) => input.m })
// @ts-expect-error 14: an attached handler takes the task's input
defineTask({ name: 't', input: z.object({ n: z.number() }) }).handle((input: { m: string }) => input.m)
// @ts-expect-error 15: an option of backoffs that does not exist
exponential({ first: '1m' })

// Results
// @ts-expect-error 16: the result has no such field
;(await job.result()).messageId
// @ts-expect-error 17: the result is no string
const text: string = await job.result()
// @ts-expect-error 18: a timeout is a duration
await job.result({ timeout: new Date() })
// @ts-expect-error 19: a result by id alone is unknown
;(await mill.job('x').result()).id

// Options of one job
// @ts-expect-error 20: a bare number is no runAt
await mill.enqueue(email, { to: 'a' }, { runAt: 1_536_323_288 })
// @ts-expect-error 21: priorities are numbers
await mill.enqueue(email, { to: 'a' }, { priority: 'high' })
// @ts-expect-error 22: an unknown option
await mill.enqueue(email, { to: 'a' }, { attempts: 3 })
// @ts-expect-error 23: ids are text
await mill.enqueue(email, { to: 'a' }, { id: 42 })

// Queues, workers, mills
// @ts-expect-error 24: an unknown option of a queue
millrace({ store: 'memory:', queues: { a: { concurrency: 3 } } })
// @ts-expect-error 25: an order there is not
millrace({ store: 'memory:', queues: { a: { order: 'random' } } })
// @ts-expect-error 26: a mill needs a store
millrace({ tasks: [email] })
// @ts-expect-error 27: a selector there is not
mill.worker({ selector: 'fair' })
// @ts-expect-error 28: jobs are chosen by ids, 'all' or 'failed'
await mill.queue('a').jobs.cancel('some')
// @ts-expect-error 29: a state there is not
await mill.queue('a').jobs.list({ state: 'asleep' })
// @ts-expect-error 30: the morgue is not listed by retries
await mill.queue('a').morgue.list({ by: 'retry' })
// @ts-expect-error 31: an event there is not
mill.on('job.done', () => {})
// @ts-expect-error 32: an event's fields are known
mill.on('job.completed', ({ error }) => error)

// What users write themselves
// @ts-expect-error 33: a selector names queues
export const selector: Selector = (queues) => queues
// @ts-expect-error 34: middleware calls next and returns its promise
export const middleware: Middleware = { enqueue: (items) => items.length }
// @ts-expect-error 35: a store has the verbs of the contract
export const store: Store = { claim: async () => [] }

// Ordered tasks
const order = z.object({ order: z.string(), rev: z.number() })
const sync = defineOrderedTask({ name: 'sync', input: order, id: (o) => o.order })
// @ts-expect-error 36: a field of the wrong type
await mill.enqueue(sync, { order: 'a', rev: '1' })
// @ts-expect-error 37: ordered jobs have no priority
await mill.enqueue(sync, { order: 'a', rev: 1 }, { priority: 1 })
// @ts-expect-error 38: they go to the queue of their task
await mill.enqueue(sync, { order: 'a', rev: 1 }, { queue: 'high' })
// @ts-expect-error 39: their group is their task's to say, by the id
await mill.enqueueMany(sync, [{ order: 'a', rev: 1 }], () => ({ group: 'g' }))
// @ts-expect-error 40: a score is a number
await mill.enqueue(sync, { order: 'a', rev: 1 }, { score: '1' })
// @ts-expect-error 41: an id is text or a number
await mill.enqueue(sync, { order: 'a', rev: 1 }, { id: true })
// @ts-expect-error 42: plain jobs have no score
await mill.enqueue(email, { to: 'a' }, { score: 1 })
// @ts-expect-error 43: and no numbers as ids
mill.job(email, 42)
// @ts-expect-error 44: the id is made of the input
defineOrderedTask({ name: 't', input: order, id: (o) => o.number })
// @ts-expect-error 45: and is text or a number
defineOrderedTask({ name: 't', input: order, id: (o) => [o.order] })
// @ts-expect-error 46: a score is made of the input, a number
defineOrderedTask({ name: 't', input: order, score: (o) => o.order })
// @ts-expect-error 47: the handler takes payloads by id
defineOrderedTask({ name: 't', input: order, run: (input: { order: string }) => input.order })
// @ts-expect-error 48: of the type that the schema hands on
defineOrderedTask({ name: 't', input: order }).handle((byId: ReadonlyMap<string, readonly { rev: string }[]>) => byId)
// @ts-expect-error 49: an option that only plain tasks have
defineOrderedTask({ name: 't', shouldRun: () => true })
// @ts-expect-error 50: a way to merge there is not
defineOrderedTask({ name: 't', merge: 'newest' })
// @ts-expect-error 51: an ordered job has no result
;(await mill.job(sync, 'a').result()).id
// @ts-expect-error 52: an exclusion there is not
millrace({ store: 'memory:', queues: { a: { ordered: true, exclusive: 'queue' } } })
// @ts-expect-error 53: an order of shards answers their numbers
millrace({ store: 'memory:', queues: { a: { ordered: true, shardOrder: (shards) => shards } } })

// Groups and throttles
// @ts-expect-error 54: a group is text or a number
defineTask({ name: 't', input: z.object({ to: z.string() }), group: ({ to }) => [to] })
// @ts-expect-error 55: made of the input
defineTask({ name: 't', input: z.object({ to: z.string() }), group: ({ host }) => host })
// @ts-expect-error 56: of an ordered task it is made of the id
defineOrderedTask({ name: 't', input: order, group: (o) => o.order })
// @ts-expect-error 57: 'default' ends the rate of one group
await mill.queue('a').throttle.set('default')
// @ts-expect-error 58: what shares a throttle is fixed
await mill.queue('a').throttle.set([{ limit: 1, window: '1s', scope: 'b' }])
// @ts-expect-error 59: a throttle has a window
millrace({ store: 'memory:', queues: { a: { throttle: { limit: 1 } } } })

// Throttled queues
const numbers = mill.throttledQueue<number>('numbers', { limit: 1, window: '1s' })
// @ts-expect-error 60: an item of another type
await numbers.push('one')
// @ts-expect-error 61: no item
await numbers.push()
// @ts-expect-error 62: a priority is a number
await numbers.push(1, 'high')
// @ts-expect-error 63: there may be no item
export const one: number = await numbers.pop()
// @ts-expect-error 64: nor where it is told why
export const other: number = (await numbers.tryPop()).item
// @ts-expect-error 65: pops do not wait for an item
await numbers.pop(1_000)
// @ts-expect-error 66: what a throttled queue counts by is fixed
mill.throttledQueue('a', { limit: 1, window: '1s', by: 'group' })
// @ts-expect-error 67: an elastic tempo says its buffer
mill.throttledQueue('a', { limit: 1, window: '1s', moderate: true, elastic: true })
// @ts-expect-error 68: an order there is not
mill.throttledQueue('a', { limit: 1, window: '1s', order: 'random' })
// @ts-expect-error 69: it has a name
mill.throttledQueue({ limit: 1, window: '1s' })

export { text }

// Schedules
const ping = defineTask({ name: 'ping', run: () => {} })
millrace({
  store: 'memory:',
  tasks: [email, ping],
  schedules: {
    fine: { cron: '@daily', task: email, input: { to: 'a' }, enqueue: { priority: 3 } },
    idle: { every: '15m', task: ping },
    // @ts-expect-error an input of the wrong type
    wrong: { every: '15m', task: email, input: { to: 1 } },
    // @ts-expect-error no input for a task that needs one
    none: { every: '15m', task: email },
    // @ts-expect-error jobs of a schedule are named by their ticks
    named: { every: '15m', task: ping, enqueue: { id: 'x' } },
    // @ts-expect-error an option that does not exist
    strange: { every: '15m', task: ping, timezone: 'UTC' },
  },
})
// @ts-expect-error an input of the wrong type, at run time
await mill.schedules.set('tenant', { every: '1h', task: email, input: { to: 1 } })
