/** An unserved queue: one in which jobs wait although no worker takes them. Pure. */

import type { QueueRow } from '../api/answers.js'

export function isUnserved({ serving, ready, scheduled }: Pick<QueueRow, 'serving' | 'ready' | 'scheduled'>): boolean {
  return serving === 0 && ready + scheduled > 0
}
