/**
 * The process of one contender: takes measures as they are ordered, one at a time, and sends back the results. Arguments:
 * the contender, the server, and for the baseline the checkout whose build it takes.
 */

import type { PostgresName } from '../postgres/postgres-contenders.js'
import { type HomeName, type OpenContender, openers } from './contender.js'
import type { MeasureAnswer, MeasureOrder } from './contender-process.js'
import { measuresOf } from './measures.js'

const [name, url = '', checkout = ''] = process.argv.slice(2)
// A process loads only what its contender needs.
const measures = url.startsWith('postgres:') ? await onPostgres() : await onRedis()

async function onRedis() {
  const { RedisMeter } = await import('../redis/redis-meter.js')
  return measuresOf((await ofBuild()) ?? (await openers[name as HomeName]()).open, url, new RedisMeter(url))
}

async function onPostgres() {
  const { PostgresMeter } = await import('../postgres/postgres-meter.js')
  const { postgresOpeners } = await import('../postgres/postgres-contenders.js')
  const open = (await ofBuild()) ?? (await postgresOpeners[name as PostgresName]())
  return measuresOf(open, url, new PostgresMeter(url))
}

async function ofBuild(): Promise<OpenContender | undefined> {
  if (name === 'baseline') return (await import('./millrace-redis.js')).openBuilt(checkout)
  return undefined
}

process.once('disconnect', () => process.exit())
process.on('message', async ({ measure, plan }: MeasureOrder) => {
  const answer: MeasureAnswer = await (measures[measure] as (plan: unknown) => Promise<unknown>)(plan).then(
    (value) => ({ value }),
    (error: unknown) => ({ error: error instanceof Error ? String(error.stack) : String(error) }),
  )
  process.send?.(answer)
})
process.send?.('ready')
