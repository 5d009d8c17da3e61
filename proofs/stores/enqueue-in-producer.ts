/**
 * A producer of the proof of enqueueIn: writes orders and enqueues their jobs, in one transaction each, and dies where
 * its rounds order it.
 */

import { createRequire } from 'node:module'
import { millrace } from 'millrace'
import { type ProducerSettings, type ProducerWord, type Round, roundOf, ship } from './enqueue-in-words.js'

const { file, driver, seed, from, to } = JSON.parse(process.argv[2]!) as ProducerSettings
const require = createRequire(import.meta.url)

/** The methods that both drivers have. */
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
    // Without a transaction, the job is stored first and its row second.
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
    // A refused job in the middle of a transaction changes nothing else.
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
  // The parent must have this message before the round kills this process.
  await new Promise<void>((resolve) => process.send!({ begun: number } satisfies ProducerWord, () => resolve()))
  for (;;) {
    try {
      write(number, roundOf(seed, number))
      break
    } catch (error) {
      // A worker had the lock, or wrote after this transaction read. A user tries again too.
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
