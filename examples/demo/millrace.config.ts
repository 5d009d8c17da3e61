/** The configuration of the demo, on the store that the environment names. */

import { millrace } from 'millrace'
import { queues } from './queues.js'
import { checksum, follow } from './tasks.js'

export default millrace({
  store: process.env['MILLRACE_STORE'] ?? 'sqlite:.millrace/demo.db',
  // Where others use the server too, its keys are its own.
  namespace: 'millrace-demo',
  queues: { ...queues, history: { shards: 8 } },
  tasks: [checksum, follow],
})
