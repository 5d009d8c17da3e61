// A schema turns text into a number: what it makes is no input of it, so it must not be transformed twice. Every attempt gets the number.
// With a random default beside such a transform each attempt would get another value: an event warns of that.
import { randomUUID } from 'node:crypto'
import { defineTask, millrace } from 'millrace'
import { z } from 'zod'

const amounts = []
const pay = defineTask({
  name: 'pay',
  input: z.object({ amount: z.string().transform(Number) }),
  retry: { max: 2, backoff: () => 0 },
  async run({ amount }) {
    amounts.push(amount)
    if (amounts.length < 3) throw new Error('the bank is slow')
  },
})
const mixed = defineTask({
  name: 'mixed',
  input: z.object({ amount: z.string().transform(Number), key: z.string().default(() => randomUUID()) }),
  async run() {},
})
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `sum${Date.now()}`, tasks: [pay, mixed] })
const warned = []
mill.on('schema.varied', ({ task }) => warned.push(task))
await mill.worker().start()
await mill.enqueue(mixed, { amount: '1' })
await (await mill.enqueue(pay, { amount: '5' })).result()
console.log(amounts.join() === '5,5,5' && warned.join() === 'mixed' ? 'ok' : 'WRONG', { amounts, warned })
await mill.close()
