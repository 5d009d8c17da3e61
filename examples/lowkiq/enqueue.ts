/** Lowkiq's `ATestWorker.perform_async`: three jobs, of which the last says its score and its time. */

import { aTestWorker } from './a-test-worker.js'
import mill from './millrace.config.js'

await Promise.all([
  mill.enqueue(aTestWorker, '', { id: 0 }),
  mill.enqueue(aTestWorker, { attr: 'v1' }, { id: 1 }),
  mill.enqueue(aTestWorker, { attr: 'v1' }, { id: 2, score: Date.now(), runAt: new Date() }),
])
await mill.close()
