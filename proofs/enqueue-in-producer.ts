/** A producer of the proof of enqueueIn: writes orders and enqueues their jobs in one transaction each, and dies where its rounds say so. */

import { createRequire } from 'node:module'
import { millrace } from 'millrace'
import { type ProducerSettings, type ProducerWord, type Round, roundOf, ship } from './enqueue-in-words.js'

const { file, driver, seed, from, to } = JSON.parse(process.argv[2]!) as ProducerSettings
const require = createRequire(import.meta.url)

/** What both drivers have. */
interface Connection {
  exec(sql: string): unknown
  prepare(sql: string): { run(...values: string[]): unknown }
  close(): void
}

const db: Connection =
  driver === 'better-sqlite3'
    ? new (require('better-sqlite3'))(file)
    : new (require('@photostructure/sqlite').DatabaseSync)(file, { timeout: 5_000 })
const insert = db.prepare('INSERT INTO orders (id) VALUES (?)')
const mill = millrace({ store: `sqlite:${file}?driver=${driver}`, tasks: [ship] })
await mill.ready()

function die(): never {
  process.kill(process.pid, 'SIGKILL')
  for (;;);
}

/** One order for each job, and one job for each order: `<round>-<place>`. */
function write(number: number, { end, jobs, at }: Round): void {
  const orders = Array.from({ length: jobs }, (_, i) => `${number}-${i}`)
  const put = (order: string) => {
    insert.run(order)
    if (end === 'kill' && at === 0) die()
    mill.enqueueIn(db, ship, order, { id: order })
    if (end === 'kill' && at === 1) die()
  }
  if (end === 'alone') {
    // The row comes second: a job is not stored for it, but the row for a job that is.
    for (const order of orders) {
      mill.enqueueIn(db, ship, order, { id: order })
      insert.run(order)
    }
    return
  }
  db.exec(number % 2 === 0 ? 'BEGIN IMMEDIATE' : 'BEGIN')
  for (const order of orders) put(order)
  if (end === 'savepoint') {
    db.exec('SAVEPOINT more')
    put(`${number}-gone`)
    db.exec('ROLLBACK TO more')
  }
  if (end === 'refused') {
    // A job that is refused in the midst takes nothing with it.
    const same = mill.enqueueIn(db, ship, 'twice', { id: orders[0]! })
    if (same.outcome !== 'duplicate') throw new Error(`an id twice in one transaction was '${same.outcome}'`)
    try {
      mill.enqueueIn(db, ship, 'x'.repeat(300_000))
    } catch {}
  }
  if (end === 'rollback') return void db.exec('ROLLBACK')
  if (end === 'kill' && at === 2) die()
  db.exec('COMMIT')
  if (end === 'kill') die()
}

for (let number = from; number < to; number += 1) {
  // Waited for, so that it has been heard when the round kills this process.
  await new Promise<void>((resolve) => process.send!({ begun: number } satisfies ProducerWord, () => resolve()))
  for (;;) {
    try {
      write(number, roundOf(seed, number))
      break
    } catch (error) {
      // A worker had the lock, or wrote since this transaction read: a user tries again.
      if ((error as { code?: unknown }).code !== 'store-unavailable' && !/locked|busy/i.test(String(error))) throw error
      try {
        db.exec('ROLLBACK')
      } catch {}
    }
  }
}
await mill.close()
db.close()
process.disconnect()
