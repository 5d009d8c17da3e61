/** The configuration: what `millrace import kale settings.py` makes of Kale's settings, with the tasks. */

import { millrace } from 'millrace'
import { failTask, myTask } from './tasks.js'

export default millrace({
  // All queues are polled at once: on an emulator calls cost nothing.
  store: process.env['MILLRACE_STORE'] ?? 'sqs://us-west-2?endpoint=http://127.0.0.1:9324&poll=each',
  namespace: '',
  queues: './taskworker/queue_config.yaml',
  maxPayloadBytes: 256_000,
  worker: { selector: 'reduced-lottery' },
  tasks: [myTask, failTask],
})
