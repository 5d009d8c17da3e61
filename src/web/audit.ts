/** An audit: the record of one action through the window, which the mill took, took in part or refused. */

import type { Logger } from '../core/logger.js'
import { messageOf } from '../core/messages/describe.js'

export interface Audit {
  readonly at: Date
  /** The viewer and their address; the address is absent if the server does not give it. */
  readonly who: string
  readonly address?: string
  /** The name of the action, such as `queue.pause`, `job.cancel`, `morgue.revive`. */
  readonly action: string
  /** The target of the action, as the address of the request names it: `{ queue: 'mail', id: 'welcome-42' }`. */
  readonly on: Readonly<Record<string, string>>
  /**
   * The chosen jobs: a number of ids, all, those that failed, or a filter. For `job.signal` and `job.forget-step` the name of the
   * signal or step. Absent for any other action on one thing.
   */
  readonly which?: string
  /** The number of changed things. */
  readonly changed?: number
  /** The code of the error, if it was refused; or taken in part, if `changed` is more than 0. */
  readonly error?: string
}

/** Passes it to the logger and to the user's hook; an error of the hook is logged. */
export function tellAudit(audit: Audit, logger: Logger, onAction: ((audit: Audit) => void) | undefined): void {
  const { at, ...fields } = audit
  const { who, action, error, changed = 0 } = fields
  const taken =
    error === undefined ? 'took the action' : changed > 0 ? 'took in part the action' : 'was refused the action'
  logger.info(`${who} ${taken} ${action}`, { ...fields, at: at.toISOString() })
  try {
    onAction?.(audit)
  } catch (error) {
    logger.error(`onAction of webHandler() threw: ${messageOf(error)}`)
  }
}
