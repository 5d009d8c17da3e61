/** The source of the overview: reads it each second, and sends it when it has changed. */

import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '../../core/platform/clock.js'
import { recordJson } from '../../core/values/record-json.js'
import { overviewOf } from '../state/overview.js'
import { keptSparks, sparksOfLast } from '../state/sparks.js'
import type { MillWindow } from '../window/mill-window.js'
import type { StreamMessage } from './event-stream.js'
import { failureMessage } from './failure-message.js'
import type { Source } from './topic.js'

const everyMs = 1_000
const sparkMinutes = 60
const sparksKeptMs = 5_000

export function overviewSource(window: MillWindow): Source {
  const sparks = keptSparks(sparksOfLast(sparkMinutes), sparksKeptMs, systemClock.mono)
  let last: StreamMessage | undefined
  let standing = ''
  const look = async (tell: (message: StreamMessage) => void) => {
    const { at, ...rest } = await overviewOf(window.mill, sparks)
    const now = recordJson(rest)
    if (now === standing) return
    standing = now
    last = { event: 'overview', data: recordJson({ at, ...rest }) }
    tell(last)
  }
  const goOn = async (tell: (message: StreamMessage) => void, signal: AbortSignal) => {
    while (!signal.aborted) {
      await delay(everyMs, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      await look(tell).catch((error: unknown) => {
        standing = ''
        tell(failureMessage(error, window.mill.logger))
      })
    }
  }
  return {
    keeping: 'latest',
    begin: async (tell, signal) => {
      await look(tell)
      void goOn(tell, signal)
    },
    opening: () => (last === undefined ? [] : [last]),
  }
}
