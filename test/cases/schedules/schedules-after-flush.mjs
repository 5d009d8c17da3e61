// Somebody flushes the Redis (or it restarts without persistence) while a worker runs that declares a schedule.
// The declared schedule is there again within a minute, and a warning says that it was gone.
// REDIS=redis://127.0.0.1:PORT/9 - the database is emptied.
import { Redis } from 'ioredis'
import { defineTask, millrace } from 'millrace'

const store = process.env.REDIS
const redis = new Redis(store)
await redis.flushdb()
let ticks = 0
const told = []
const sync = defineTask({
  name: 'sync',
  async run() {
    ticks += 1
  },
})
const logger = { debug() {}, info() {}, warn: (text) => told.push(text), error: (text) => told.push(text) }
const mill = millrace({ store, tasks: [sync], schedules: { sync: { every: '1s', task: sync } }, logger })
await mill.worker().start()
await new Promise((resolve) => setTimeout(resolve, 4_000))
const before = ticks
await redis.flushdb()
await new Promise((resolve) => setTimeout(resolve, 60_000))
const after = ticks - before
console.log(after > 20 && told.length > 0 ? 'ok' : 'WRONG', { before, after, told })
await mill.close()
await redis.quit()
