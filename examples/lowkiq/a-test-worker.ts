/** Lowkiq's ATestWorker as an ordered task. Its number of shards is a setting of its queue. */

import { defineOrderedTask } from 'millrace'
import { logger } from './logging.js'
import { doSomeWork, payload } from './some-work.js'

export const aTestWorker = defineOrderedTask({
  name: 'ATestWorker',
  input: payload,
  merge: 'distinct',
  batchSize: 10,
  retry: {
    max: 5,
    // After 10, 20, 30, 40, 50 seconds.
    backoff: (failures) => 10_000 * failures,
  },
  onExhausted(payloads) {
    for (const { id, error } of payloads)
      logger.info(`retries exhausted for ${id} of ATestWorker with error ${(error as Error).message}`)
  },
  async run(payloadsById) {
    for (const [id, payloads] of payloadsById) {
      // Sorted by score, from old to new.
      for (const payload of payloads) await doSomeWork(id, payload)
    }
  },
})
