/** The configuration: what `millrace work`, `millrace stats` and producers share. */

import { millrace } from 'millrace'
import { greet } from './tasks.js'

export default millrace({
  store: process.env['MILLRACE_STORE'] ?? 'sqlite:.millrace/jobs.db',
  queues: { default: { weight: 40 }, high: { weight: 100 } },
  tasks: [greet],
})
