/** Blueque's `queue.enqueue(parameters)` and `queue.schedule(parameters, eta)`: `npx jiti enqueue.ts <json> [seconds from now]`. */

import { defineTask } from 'millrace'
import mill from './millrace.config.js'

// For the types of those who enqueue; who runs it needs no definition.
const encode = defineTask({ name: 'encode', queue: 'some.queue' })

const [parameters = '{"frames":20}', inSeconds = '0'] = process.argv.slice(2)
const runAt = new Date(Date.now() + 1_000 * Number(inSeconds))
const { id } = await mill.enqueue(encode, JSON.parse(parameters), { runAt })
console.log(id)
await mill.close()
