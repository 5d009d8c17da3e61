/** Some work: says which payload it was given; fails where that asks for it. */

import { z } from 'zod'
import { logger } from './logging.js'

/** As in Lowkiq a payload may be `''`. */
export const payload = z.union([z.literal(''), z.object({ attr: z.string() })])
export type Payload = z.infer<typeof payload>

export async function doSomeWork(id: string, payload: Payload): Promise<void> {
  if (payload !== '' && payload.attr === 'fails') throw new Error('it fails, as it was told to')
  logger.info(`some work for ${id}: ${JSON.stringify(payload)}`)
}
