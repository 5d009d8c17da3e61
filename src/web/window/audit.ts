/** An audit: one action that was taken through the window, or refused by the mill. */

import type { Logger } from '../../core/logger.js'
import { messageOf } from '../../core/values/describe.js'

export interface Audit {
  readonly at: Date
  /** Who did it, and from where; the address is absent where the server does not tell. */
  readonly who: string
  readonly address?: string
  /** As `queue.pause`, `job.cancel`, `morgue.revive`. */
  readonly action: string
  /** What it was done to, as the address of the request names it: `{ queue: 'mail', id: 'welcome-42' }`. */
  readonly on: Readonly<Record<string, string>>
  /** Which jobs: so many by id, all, or those that failed. Absent for an action on one thing. */
  readonly which?: string
  /** How many were changed. */
  readonly changed?: number
  /** The code of the error, where it was refused. */
  readonly error?: string
}

/** Tells it to the logger and to the user's hook; what the hook throws is logged. */
export function tellAudit(audit: Audit, logger: Logger, onAction: ((audit: Audit) => void) | undefined): void {
  const { at, ...fields } = audit
  logger.info(
    `${audit.who} ${audit.error === undefined ? 'took the action' : 'was refused the action'} ${audit.action}`,
    {
      ...fields,
      at: at.toISOString(),
    },
  )
  try {
    onAction?.(audit)
  } catch (error) {
    logger.error(`onAction of webHandler() threw: ${messageOf(error)}`)
  }
}
