// A customer's server answered 429 with "Retry-After: 86400" by mistake, and is mended a minute later.
// Right: the operator sees that the group is held, and until when, and can end the hold; then its jobs run at once.
import { defineTask, hold, millrace } from 'millrace'

const run = async ({ retryAfter }) => (retryAfter ? hold(`${retryAfter}s`, { atMost: '1d' }) : 'delivered')
const deliver = defineTask({ name: 'deliver', queue: 'webhooks', group: ({ host }) => host, run })
const store = process.env.STORE ?? 'memory:'
const mill = millrace({ store, namespace: `hold${Date.now()}`, queues: { webhooks: {} }, tasks: [deliver] })
await mill.worker().start()
const first = await mill.enqueue(deliver, { host: 'shop.example', retryAfter: 86_400 })
await new Promise((held) => mill.on('job.released', held))
const queue = mill.queue('webhooks')
const { held } = await first.record()
const { holds } = await queue.throttle.holds()
const hours = (holds[0]?.forMs ?? 0) / 3_600_000
console.log('seen by the operator:', holds.length, Math.round(hours), held?.until instanceof Date)
const isSeen = holds[0]?.group === 'shop.example' && hours > 23.9 && held?.until > new Date()
await first.cancel('its server is mended')
await queue.throttle.release('shop.example')
const next = await mill.enqueue(deliver, { host: 'shop.example' })
const ran = await next.result({ timeout: '3s' }).then(
  () => 'ran',
  ({ code }) => code,
)
console.log(isSeen && ran === 'ran' ? 'ok' : `WRONG: seen ${isSeen}, ${ran}`)
await mill.close()
