/** The producer: enqueues a job and waits until some worker has done it. */

import mill from './millrace.config.js'
import { greet } from './tasks.js'

const job = await mill.enqueue(greet, { name: process.argv[2] ?? 'world' })
console.log(`enqueued ${job.id}; it runs as soon as \`millrace work\` does`)
const { greeting } = await job.result({ timeout: '1m' })
console.log(greeting)
await mill.close()
