/**
 * A producer of `postgres-transactions`: writes orders and enqueues their jobs, four transactions at a time, and dies where its
 * rounds order it.
 */

import { millrace } from 'millrace'
import { clients } from '../../test/stores/postgres/user/postgres-clients.js'
import {
  die,
  type ProducerSettings,
  type ProducerWord,
  type Round,
  roundOf,
  saysBeginAnew,
  ship,
} from './transaction-words.js'

const { store, client: name, seed, from, to } = JSON.parse(process.argv[2]!) as ProducerSettings
const lanes = 4
/** Around so long a commit takes. */
const commitMs = 3

const say = (word: ProducerWord) => new Promise<void>((resolve) => process.send!(word, () => resolve()))
const client = await clients[name]!(store.split('?')[0]!)
const mill = millrace({ store, tasks: [ship] })
await mill.ready()
let repeated = 0

/** One order for each job, and one job for each order: `<round>-<place>`. */
async function write(number: number, { isolation, end, jobs, at }: Round): Promise<void> {
  const isKill = end === 'kill'
  await client.transact(isolation, async ({ tx, run }) => {
    // Transactions that read what others write cannot all be serializable.
    if (number % 4 === 1) await run('SELECT count(*) FROM orders WHERE id > $1', String(number))
    for (let i = 0; i < jobs; i += 1) {
      const order = `${number}-${i}`
      await run('INSERT INTO orders VALUES ($1)', order)
      if (isKill && at === 0) die()
      await mill.enqueueIn(tx, ship, order, { id: order })
      if (isKill && at === 1) die()
      if (end === 'refused') await refused(tx, order)
    }
    if (end === 'rollback') throw new Error('as ordered')
    if (isKill && at === 2) setTimeout(die, Math.random() * commitMs)
  })
  if (isKill) die()
}

/** Refused jobs in the middle of a transaction change nothing else. */
async function refused(tx: object, order: string): Promise<void> {
  const same = await mill.enqueueIn(tx, ship, 'twice', { id: order })
  if (same.outcome !== 'duplicate') throw new Error(`an id twice in one transaction was '${same.outcome}'`)
  await mill.enqueueIn(tx, ship, 'x'.repeat(2_000_000)).catch((error: { code?: unknown }) => {
    if (error.code !== 'payload-too-large') throw error
  })
}

let next = from
await Promise.all(
  Array.from({ length: lanes }, async () => {
    for (let number = next++; number < to; number = next++) {
      // The parent must have this message before the round kills this process.
      await say({ begun: number, repeated })
      const round = roundOf(seed, number)
      for (;;) {
        try {
          await write(number, round)
          break
        } catch (error) {
          if (round.end === 'rollback' && (error as Error).message === 'as ordered') break
          if (!saysBeginAnew(error)) throw error
          repeated += 1
        }
      }
    }
  }),
)
await mill.close()
await client.close()
process.disconnect()
