/** Order tasks: an ordered task whose payloads say their id and score, and what tests of it share. */

import { type AnyTask, defineOrderedTask, type Mill, type OrderedContext, type OrderedTaskOptions } from 'millrace'
import { memoryHarness } from 'millrace/store-testing'
import * as v from 'valibot'
import { onTestFinished } from 'vitest'
import type { AnyOrderedTask } from '#src/core/task/ordered-task.js'
import { nextEvent, recorded } from '../../next-event.js'
import { type StoreKind, testMillOn } from '../../test-mill.js'

export const kinds = ['memory'] as const satisfies readonly StoreKind[]

export interface Push {
  readonly id: string
  readonly n: number
}

export type Run = (payloadsById: ReadonlyMap<string, readonly Push[]>, ctx: OrderedContext) => unknown

export const shape = v.object({ id: v.string(), n: v.number() })
export type Options = Pick<
  OrderedTaskOptions<'orders', Push, Push>,
  'batchSize' | 'maxPayloads' | 'onExhausted' | 'retry' | 'slowAfter' | 'timeLimit'
>

/** A task whose payloads say their id and score, retried at once. */
export function orders(run: Run, options: Options = {}) {
  return defineOrderedTask({
    name: 'orders',
    input: shape,
    id: ({ id }) => id,
    score: ({ n }) => n,
    ...options,
    retry: { backoff: () => 0, ...options.retry },
    run,
  })
}

export const push = (id: string, ...ns: number[]) => ns.map((n) => ({ id, n }))
export const numbers = (payloadsById: ReadonlyMap<string, readonly Push[]>) =>
  Object.fromEntries([...payloadsById].map(([id, payloads]) => [id, payloads.map(({ n }) => n)]))
export const oneShard = { orders: { ordered: true, shards: 1 } }

/** Resolves when so many events of this name have come, with all of them. */
export function events<Name extends Parameters<typeof recorded>[1]>(mill: Mill, name: Name, count: number) {
  const seen = recorded(mill, name)
  return nextEvent(mill, name, () => seen.length === count).then(() => seen)
}

/** A mill on a store in hand, into which payloads are put as they are. */
export async function raw(kind: (typeof kinds)[number], ...tasks: [AnyOrderedTask, ...AnyTask[]]) {
  const harness = await { memory: memoryHarness }[kind]()
  onTestFinished(() => harness.close())
  const store = await harness.open()
  const m = testMillOn(store, { tasks, queues: oneShard })
  await m.ready()
  let calls = 0
  const put = (id: string, payload: string, codec = 'json', name = 'orders') =>
    store.enqueue([
      {
        callId: `call-${++calls}`,
        queue: 'orders',
        jobs: [{ id, task: name, payload, codec, priority: 0, rememberMs: 0 }],
      },
    ])
  return { m, put, store }
}
