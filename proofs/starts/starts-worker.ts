/** A worker of the proof of starts: runs throttled jobs. Each makes one request to the server of its host. */

import { Agent, request } from 'node:http'
import { defineTask, millrace } from 'millrace'
import { throttleOf, visits } from './starts-words.js'

const [store, port, moderate] = process.argv.slice(2) as [string, string, string]
const agent = new Agent({ keepAlive: true, maxSockets: 64 })

function get(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request({ port: Number(port), path, agent }, (answer) => answer.resume().once('end', () => resolve()))
    asked.once('error', reject).end()
  })
}

const mill = millrace({
  store,
  queues: { [visits]: { throttle: throttleOf(moderate === 'moderate'), longPoll: '5s' } },
  tasks: [
    defineTask({
      name: 'visit',
      queue: visits,
      async run(input) {
        const { host, burst } = input as { readonly host: string; readonly burst: number }
        // The machine's monotonic clock, which all processes share.
        const startedAt = Number(process.hrtime.bigint() / 1_000n) / 1_000
        await get(`/?host=${host}&burst=${burst}&started=${startedAt}`)
      },
    }),
  ],
})

let wasted = 0
let late = 0
mill.on('permit.wasted', () => {
  wasted += 1
})
mill.on('start.late', () => {
  late += 1
})
// Opens the connections before the first job.
await Promise.all(Array.from({ length: 64 }, () => get('/warm')))
await mill.worker({ concurrency: 64 }).start()
process.on('message', async () => {
  await mill.close()
  process.send!({ wasted, late }, () => process.exit())
})
process.send!('ready')
