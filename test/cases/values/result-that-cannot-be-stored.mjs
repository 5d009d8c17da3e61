// A handler returns something that the codec refuses: an instance, a function, a cycle, text that was cut inside an emoji.
// Whoever awaits the result gets a typed error that says so, and never undefined.
import { defineTask, millrace } from 'millrace'

class Invoice {
  total = 3
}
const returns = {
  instance: () => new Invoice(),
  big: () => 'x'.repeat(300_000),
  cut: () => 'so 😀'.slice(0, 4),
  url: () => new URL('http://a.example'),
}
const task = defineTask({ name: 'task', retry: { max: 0 }, run: async (kind) => returns[kind]() })
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `kept${Date.now()}`, tasks: [task] })
await mill.worker().start()
let wrong = 0
for (const kind of Object.keys(returns)) {
  const job = await mill.enqueue(task, kind)
  const answer = await job.result({ timeout: '10s' }).then(
    (value) => ({ resolved: value }),
    (error) => ({ code: error.code }),
  )
  console.log(kind, answer)
  if (answer.code !== 'result-not-kept') wrong += 1
}
await mill.close()
console.log(wrong === 0 ? 'ok' : 'WRONG', { wrong })
