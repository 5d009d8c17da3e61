/** A claim of job `a` of the task `t`, with what matters to a test. */

import type { Claim } from 'millrace/store'

export const claimOf = (more: Partial<Claim> = {}): Claim => ({
  ...{ queue: 'q', id: 'a', task: 't', payload: '1', priority: 0 },
  ...{ attempt: 1, crashes: 0, fence: 1, createdAt: 0, runAt: 0, ...more },
})
