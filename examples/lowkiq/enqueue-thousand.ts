/** A thousand jobs in one call; each has its id from its payload. */

import { anIdWorker } from './an-id-worker.js'
import mill from './millrace.config.js'

const payloads = Array.from({ length: 1_000 }, (_, id) => ({ id }))
await mill.enqueueMany(anIdWorker, payloads)
await mill.close()
