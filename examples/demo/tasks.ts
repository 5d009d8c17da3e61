/** The work of the demo: the SHA-256 checksum of one file. */

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { defineTask } from 'millrace'
import { z } from 'zod'

export interface Checksum {
  readonly sha256: string
  /** Names the claim that took this job, together with its queue. */
  readonly fence: number
  /** When the handler began and ended: ms on the machine's monotonic clock, which all its processes share. */
  readonly startedAt: number
  readonly endedAt: number
  readonly attempt: number
}

export const checksum = defineTask({
  name: 'checksum',
  input: z.object({ file: z.string() }),
  timeLimit: '10m',
  retry: { max: 3, backoff: () => 200 },
  async run({ file }, { job }): Promise<Checksum> {
    const startedAt = machineMs()
    if (job.meta['failsFirst'] === true && job.attempt === 1) throw new Error('fails the first time, on purpose')
    const sha256 = await sha256Of(file)
    return { sha256, fence: job.fence, startedAt, endedAt: machineMs(), attempt: job.attempt }
  },
})

function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}
