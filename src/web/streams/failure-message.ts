/** The message of a failure: the source of a stream cannot be read now, and is tried again. */

import type { Logger } from '../../core/logger.js'
import { failureOf } from '../failure.js'
import type { StreamMessage } from './event-stream.js'

export function failureMessage(error: unknown, logger: Logger): StreamMessage {
  const { code, message } = failureOf(error, logger)
  return { event: 'failure', data: JSON.stringify({ code, message }) }
}
