// A schema fills in an idempotency key. Every attempt gets the same one: what the schema made at the enqueue.
import { randomUUID } from 'node:crypto'
import { defineTask, millrace } from 'millrace'
import { z } from 'zod'

const keys = []
const pay = defineTask({
  name: 'pay',
  input: z.object({ amount: z.number(), key: z.string().default(() => randomUUID()) }),
  retry: { max: 2, backoff: () => 0 },
  async run({ key }) {
    keys.push(key)
    if (keys.length < 3) throw new Error('the bank is slow')
  },
})
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `pay${Date.now()}`, tasks: [pay] })
await mill.worker().start()
await (await mill.enqueue(pay, { amount: 5 })).result()
console.log(new Set(keys).size === 1 ? 'ok' : 'WRONG', `${new Set(keys).size} keys in 3 attempts`)
await mill.close()
