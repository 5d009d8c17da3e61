/** The names of queues, as the compiler knows them from a mill's configuration. Checked by `npm run types`; never run. */

import { defineOrderedTask, defineTask, type Mill, millrace, type QueueOptions } from 'millrace'
import { expectTypeOf } from 'vitest'

const email = defineTask({ name: 'email', run: async (to: string) => to })
const urgent = defineTask({ name: 'urgent', queue: 'high' })
const sync = defineOrderedTask({ name: 'sync' })
const orders = defineOrderedTask({ name: 'orders', queue: 'all-orders' })
expectTypeOf(email.queue).toEqualTypeOf<'default'>()
expectTypeOf(urgent.queue).toEqualTypeOf<'high'>()
expectTypeOf(sync.queue).toEqualTypeOf<'sync'>()
expectTypeOf(orders.queue).toEqualTypeOf<'all-orders'>()

const mill = millrace({
  store: 'memory:',
  queues: { low: { weight: 1 } },
  tasks: [email, urgent, sync, orders],
  worker: { queues: ['low', 'high'] },
})
expectTypeOf(mill).toEqualTypeOf<Mill<'low' | 'default' | 'high' | 'sync' | 'all-orders'>>()
mill.queue('low')
mill.queue('all-orders')
mill.listener('high')
mill.worker({ queues: ['default', 'sync'] })
await mill.depths(['low'])
await mill.enqueue(email, 'ada', { queue: 'high' })
await mill.enqueueMany(email, ['ada'], () => ({ queue: 'low' }))
// @ts-expect-error 1: a queue there is not
mill.queue('nope')
// @ts-expect-error 2: nor for one job
await mill.enqueue(email, 'ada', { queue: 'hihg' })
// @ts-expect-error 3: nor for one of many
await mill.enqueueMany(email, ['ada'], () => ({ queue: 'hihg' }))
// @ts-expect-error 4: nor for a worker
mill.worker({ queues: ['default', 'hihg'] })
// @ts-expect-error 5: nor for a listener
mill.listener('hihg')
// @ts-expect-error 6: nor for counts
await mill.depths(['hihg'])
// @ts-expect-error 7: nor for the workers of a configuration
millrace({ store: 'memory:', tasks: [email], worker: { queues: ['hihg'] } })
// A throttled queue need not be declared.
mill.throttledQueue('elsewhere', { limit: 1, window: '1s' })

// By tasks alone, and by queues alone
expectTypeOf(millrace({ store: 'memory:', tasks: [email, urgent] })).toEqualTypeOf<Mill<'default' | 'high'>>()
expectTypeOf(millrace({ store: 'memory:', queues: { a: {}, b: {} } })).toEqualTypeOf<Mill<'a' | 'b'>>()

// Where the compiler cannot know them
declare const path: string
declare const declared: Record<string, QueueOptions>
expectTypeOf(millrace({ store: 'memory:', queues: 'queues.yaml', tasks: [email] })).toEqualTypeOf<Mill<string>>()
expectTypeOf(millrace({ store: 'memory:', queues: path })).toEqualTypeOf<Mill<string>>()
expectTypeOf(millrace({ store: 'memory:', queues: declared, tasks: [email] })).toEqualTypeOf<Mill<string>>()
expectTypeOf(millrace({ store: 'memory:' })).toEqualTypeOf<Mill<string>>()
expectTypeOf(millrace({ store: 'memory:', tasks: [email] as (typeof email)[] })).toEqualTypeOf<Mill<'default'>>()

// Any mill
export function depthOf(any: Mill, queue: string) {
  return any.queue(queue).depth()
}
await depthOf(mill, 'low')
