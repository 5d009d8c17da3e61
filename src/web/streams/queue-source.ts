/** The source of a queue's events: its live feed. */

import { recordJson } from '../../core/values/record-json.js'
import type { MillWindow } from '../window/mill-window.js'
import type { StreamMessage } from './event-stream.js'
import { failureMessage } from './failure-message.js'
import type { Source } from './topic.js'

export function queueSource(window: MillWindow, queue: string): Source {
  const goOn = async (feed: AsyncIterable<{ readonly type: string }>, tell: (message: StreamMessage) => void) => {
    try {
      for await (const event of feed) tell({ event: event.type, data: recordJson(event) })
    } catch (error) {
      tell(failureMessage(error, window.mill.logger))
    }
  }
  return {
    keeping: 'all',
    begin: async (tell, signal) => {
      const feed = window.queue(queue).events({ signal })
      await feed.ready()
      void goOn(feed, tell)
    },
    opening: () => [{ event: 'ready', data: JSON.stringify({ queue }) }],
  }
}
