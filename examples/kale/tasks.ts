/** The tasks of Kale's README: `MyTask` with two arguments, and one that fails as often as it is told to. */

import { type Duration, defineTask, exponential } from 'millrace'
import { z } from 'zod'

/** After 60, 120, 240 … seconds, as in Kale; `RETRY_DELAY_MULTIPLE=1s` shortens that to look at it. */
const backoff = exponential({ base: (process.env['RETRY_DELAY_MULTIPLE'] ?? '60s') as Duration, jitter: false })

export const myTask = defineTask({
  name: 'MyTask',
  queue: 'high_priority',
  input: z.object({ arg1: z.string(), arg2: z.number() }),
  timeLimit: '5s',
  retry: { max: 4, backoff },
  async run({ arg1, arg2 }, ctx) {
    // Kale's app_data: the first argument of publish(), not one of the task.
    console.log(`MyTask ${arg1} ${arg2}, app_data ${JSON.stringify(ctx.job.meta)}`)
  },
})

export const failTask = defineTask({
  name: 'FailTask',
  input: z.object({ failures: z.number() }),
  timeLimit: '5s',
  retry: { max: 2, backoff },
  // Kale's _report_permanent_failure.
  onExhausted({ error }) {
    console.log(`FailTask is buried: ${(error as Error).message}`)
  },
  async run({ failures }, ctx) {
    const { attempt } = ctx.job
    if (attempt <= failures) throw new Error(`run ${attempt} has failed`)
    console.log(`FailTask is done at run ${attempt}`)
  },
})
