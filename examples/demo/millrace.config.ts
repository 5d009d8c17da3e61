/** The configuration of the demo, on the store that the environment names. */

import { millrace } from 'millrace'
import { otherQueues, queues } from './queues.js'
import { checksum, crawl, follow, pack } from './tasks.js'

export default millrace({
  store: process.env['MILLRACE_STORE'] ?? 'sqlite:.millrace/demo.db',
  // Where others use the server too, its keys are its own.
  namespace: 'millrace-demo',
  queues: { ...queues, ...otherQueues },
  tasks: [checksum, crawl, follow, pack],
})
