/** The next version of ATestWorker: the same work on a new queue. */

import { defineOrderedTask } from 'millrace'
import { doSomeWork, payload } from '../some-work.js'

export const aTestWorker = defineOrderedTask({
  name: 'ATestWorker',
  queue: 'ATestWorker_V2',
  input: payload,
  merge: 'distinct',
  async run(payloadsById) {
    for (const [id, payloads] of payloadsById) for (const payload of payloads) await doSomeWork(id, payload)
  },
})
