/** The client of Blueque's README: where the tasks lie, and its queue. The listener runs them; none is defined here. */

import { millrace } from 'millrace'

export default millrace({
  store: process.env['MILLRACE_STORE'] ?? 'sqlite:.millrace/jobs.db',
  // Those of the listener's processor: whoever enqueues one may.
  tasksElsewhere: ['encode'],
  queues: {
    // At most two at a time, over all listeners: what runs on through the restart of its listener counts too.
    'some.queue': { maxRunning: 2 },
  },
})
