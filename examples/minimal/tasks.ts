/** The tasks: importing this opens no connection and starts nothing. */

import { defineTask, exponential } from 'millrace'
import { z } from 'zod'

export const greet = defineTask({
  name: 'greet',
  input: z.object({ name: z.string().min(1) }),
  retry: { max: 4, backoff: exponential({ base: '1s', max: '1m' }) },
  async run({ name }, ctx) {
    return { greeting: `Hello, ${name}!`, attempt: ctx.job.attempt }
  },
})
