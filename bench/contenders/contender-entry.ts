/**
 * The process of one contender: takes measures as they are ordered, one at a time, and sends back the results. Arguments:
 * the contender, the server, and for the baseline the checkout whose build it takes.
 */

import { type HomeName, openers } from './contender.js'
import type { MeasureAnswer, MeasureOrder } from './contender-process.js'
import { measuresOf } from './measures.js'

const [name, url = '', checkout = ''] = process.argv.slice(2)
const open =
  name === 'baseline'
    ? await (await import('./millrace-redis.js')).openBuilt(checkout)
    : (await openers[name as HomeName]()).open
const measures = measuresOf(open, url)

process.once('disconnect', () => process.exit())
process.on('message', async ({ measure, plan }: MeasureOrder) => {
  const answer: MeasureAnswer = await (measures[measure] as (plan: unknown) => Promise<unknown>)(plan).then(
    (value) => ({ value }),
    (error: unknown) => ({ error: error instanceof Error ? String(error.stack) : String(error) }),
  )
  process.send?.(answer)
})
process.send?.('ready')
