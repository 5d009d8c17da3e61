// Ten changes of one order are enqueued into a FIFO queue; the service refuses the third of the call for a moment (an answer of
// SendMessageBatch may have `Failed` entries).
// Right: nothing of a group is stored before what was enqueued earlier, of an ordered task and with `fifo: true` alike.
import { writeFileSync } from 'node:fs'
import { defineOrderedTask, defineTask, millrace } from 'millrace'

writeFileSync(
  'fifo-store.mjs',
  `import { sqsStore } from 'millrace'
globalThis.taken = []
let failures = 0
const client = {
  destroy() {},
  async send({ constructor: { name }, input }) {
    if (name === 'GetQueueUrlCommand') return { QueueUrl: input.QueueName }
    if (name !== 'SendMessageBatchCommand') return { Attributes: {} }
    const failed = failures++ === 0 ? input.Entries.slice(2, 3) : []
    globalThis.taken.push(...input.Entries.filter((one) => !failed.includes(one)).map((one) => JSON.parse(one.MessageBody)))
    return { Failed: failed.map(({ Id }) => ({ Id, Code: 'InternalError', SenderFault: false })) }
  },
  reset() { globalThis.taken = []; failures = 0 },
}
globalThis.client = client
export const makeStore = ({ namespace }) => sqsStore({ client, namespace })`,
)
const change = defineOrderedTask({ name: 'change', queue: 'changes', id: ({ order }) => order, run() {} })
const step = defineTask({ name: 'step', queue: 'steps', group: ({ order }) => order, run() {} })
const mill = millrace({
  store: { module: './fifo-store.mjs', export: 'makeStore' },
  tasks: [change, step],
  queues: { steps: { fifo: true } },
})
await mill.ready()
for (const task of [change, step]) {
  globalThis.client.reset()
  await mill.enqueueMany(
    task,
    Array.from({ length: 10 }, (_, i) => ({ order: 'a', n: i + 1 })),
  )
  const order = globalThis.taken.map(({ payload }) => JSON.parse(payload).n).join(' ')
  console.log(order === '1 2 3 4 5 6 7 8 9 10' ? 'ok   ' : 'WRONG', task.name, order)
}
process.exit()
