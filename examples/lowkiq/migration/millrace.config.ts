/** The configuration of the next version: the new queue with another number of shards, and the old one to be emptied. */

import { millrace } from 'millrace'
import { aTestWorker } from './a-test-worker.js'

export default millrace({
  store: process.env['MILLRACE_STORE'] ?? 'sqlite:.millrace/jobs.db',
  queues: {
    ATestWorker_V2: { shards: 48, exclusive: 'shard' },
    // No task any more: its jobs go to the new queue.
    ATestWorker: { ordered: true, shards: 24, exclusive: 'shard' },
  },
  tasks: [aTestWorker],
})
