/** Kept results: a middleware that writes what became of a job into the ledger, for a store that keeps no results. */

import type { Middleware } from 'millrace'
import { Ledger } from './ledger.js'
import type { QueueName } from './queues.js'
import type { Checksum } from './tasks.js'

let ledger: Ledger | undefined

export const keepResult: Middleware = {
  async run(run, next) {
    const result = await next()
    if ('jobs' in run.ctx) return result
    const { id, queue } = run.ctx.job
    ledger ??= new Ledger(process.env['MILLRACE_DEMO_LEDGER']!)
    // Before the job is completed: where it is delivered again, it is there already.
    ledger.keep({ id, queue: queue as QueueName, ...(run.input as { file: string }), ...(result as Checksum) })
    return result
  },
}
