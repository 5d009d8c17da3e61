/** The configuration of the demo on SQS: the queues and tasks that it has a place for. */

import { millrace } from 'millrace'
import { keepResult } from './kept-result.js'
import { queueNames, queues } from './queues.js'
import { checksum, followAsSent } from './tasks.js'

export default millrace({
  store: process.env['MILLRACE_STORE']!,
  namespace: 'millrace-demo',
  // SQS keeps no results.
  queues: Object.fromEntries(queueNames.map((name) => [name, { weight: queues[name].weight }])),
  tasks: [checksum, followAsSent],
  middleware: [keepResult],
})
