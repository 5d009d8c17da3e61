// Several calls failed at once, a service refused with a code, a plain object was thrown. The record and the event say which
// ("A refused", "B refused"), and keep the code and the content.
import { defineTask, millrace } from 'millrace'

const throws = {
  any: () => Promise.any([Promise.reject(new Error('A refused')), Promise.reject(new Error('B refused'))]),
  object: () => {
    throw { status: 503, why: 'A refused and B refused' }
  },
  code: () => {
    throw Object.assign(new Error('A refused, B refused'), { code: 'E_BOTH' })
  },
  all: () => {
    throw new AggregateError([new Error('A refused'), new Error('B refused')], 'two of three failed')
  },
}
const task = defineTask({ name: 'task', retry: { max: 0 }, run: async (kind) => throws[kind]() })
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `died${Date.now()}`, tasks: [task] })
await mill.worker().start()
const told = {}
mill.on('job.buried', (event) => {
  told[event.id] = String(event.error)
})
let wrong = 0
for (const kind of Object.keys(throws)) {
  const job = await mill.enqueue(task, kind)
  await job.result().catch(() => {})
  const { error } = await job.record()
  const isTold = [error, told[job.id]].every((text) => /A refused/.test(text) && /B refused/.test(text))
  const isRight = isTold && (kind !== 'code' || /E_BOTH/.test(error)) && (kind !== 'object' || /503/.test(error))
  console.log(kind, isRight, JSON.stringify(error.slice(0, 60)))
  if (!isRight) wrong += 1
}
await mill.close()
console.log(wrong === 0 ? 'ok' : 'WRONG', { wrong })
