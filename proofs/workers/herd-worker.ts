/** A process of the herd: connections that claim, settle and wait as a worker does, and report when they claimed. */

import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { type HerdWord, herdQueue, machineMs } from './herd.js'

const [file = '', handles = '1'] = process.argv.slice(2)
const say = (word: HerdWord) => process.send?.(word)

let waiting = 0
const claimsAt: number[] = []

async function work(store: SqliteStore, worker: string): Promise<void> {
  await store.open([herdQueue])
  for (;;) {
    claimsAt.push(machineMs())
    const { claims } = await store.claim([{ queue: herdQueue.name, limit: 10 }], { worker, leaseMs: 30_000 })
    const claimedAt = machineMs()
    for (const { queue, id, fence } of claims) {
      await store.settle([{ queue, id, fence, kind: 'complete' }])
      say({ kind: 'settled', claimedAt, at: machineMs() })
    }
    if (claims.length === 0) await rest(store)
  }
}

async function rest(store: SqliteStore): Promise<void> {
  let isOver = false
  let isCounted = false
  const rung = store.wait([herdQueue.name], 600_000, new AbortController().signal).then(() => {
    isOver = true
    if (isCounted) waiting -= 1
  })
  // These calls are answered after the look with which the wait began.
  for (let i = 0; i < 4 && !isOver; i += 1) await store.depth([herdQueue.name])
  if (!isOver) {
    isCounted = true
    waiting += 1
  }
  await rung
}

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  const rssMb = process.memoryUsage().rss / 1_048_576
  say({ kind: 'told', waiting, claimsAt, cpuMs: (user + system) / 1_000, rssMb })
})
for (let i = 0; i < Number(handles); i += 1) {
  void work(new SqliteStore({ file }), `${process.pid}-${i}`)
}
