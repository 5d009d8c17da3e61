/** The configuration: the workers, how their queues are sharded, and the middlewares. */

import { millrace } from 'millrace'
import { aTestWorker } from './a-test-worker.js'
import { anIdWorker } from './an-id-worker.js'
import { logging } from './logging.js'

export default millrace({
  store: process.env['MILLRACE_STORE'] ?? 'sqlite:.millrace/jobs.db',
  queues: {
    // As in Lowkiq at most one batch of a shard runs at any moment. Left out, it is one run of an id, which is as safe.
    ATestWorker: { shards: 24, exclusive: 'shard' },
  },
  tasks: [aTestWorker, anIdWorker],
  middleware: logging,
})
