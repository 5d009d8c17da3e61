/** A worker that takes the id of a job from its payload; score and time could be computed in the same place. */

import { defineOrderedTask } from 'millrace'
import { z } from 'zod'
import { logger } from './logging.js'

export const anIdWorker = defineOrderedTask({
  name: 'AnIdWorker',
  input: z.object({ id: z.number() }),
  id: (payload) => payload.id,
  merge: 'distinct',
  async run(payloadsById) {
    for (const [id, payloads] of payloadsById) logger.info(`some work for ${id}: ${payloads.length}`)
  },
})
