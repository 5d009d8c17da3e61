/** The source of a job: its record whenever it changes, and its log as it grows, until it has ended. */

import { setTimeout as delay } from 'node:timers/promises'
import { newIn } from '../../client/jobs/log-tail.js'
import type { JobRecord } from '../../core/job/job.js'
import { recordJson } from '../../core/values/record-json.js'
import type { MillWindow } from '../window/mill-window.js'
import type { StreamMessage } from './event-stream.js'
import { failureMessage } from './failure-message.js'
import type { Source } from './topic.js'

/** Its worker reports news of it once a second. */
const everyMs = 500

export function jobSource(window: MillWindow, queue: string, id: string): Source {
  const watched = new WatchedJob()
  const look = async (tell: (message: StreamMessage) => void) => {
    const job = await window.queue(queue).jobs.get(id)
    for (const message of watched.seen(job && window.shown(job))) tell(message)
  }
  const goOn = async (tell: (message: StreamMessage) => void, signal: AbortSignal) => {
    while (!signal.aborted && !watched.hasEnded) {
      await delay(everyMs, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      await look(tell).catch((error: unknown) => tell(failureMessage(error, window.mill.logger)))
    }
  }
  return {
    keeping: 'all',
    begin: async (tell, signal) => {
      // `opening` informs its clients.
      await look(() => {})
      void goOn(tell, signal)
    },
    opening: () => watched.opening(),
  }
}

const endMessage: StreamMessage = { event: 'end', data: '{}' }

class WatchedJob {
  hasEnded = false
  #record = ''
  #log = ''

  /** The news since the last look. Undefined: nothing of the job is kept any more. */
  seen(job: JobRecord | undefined): StreamMessage[] {
    this.hasEnded = job === undefined || ['completed', 'dead', 'cancelled'].includes(job.state)
    const messages: StreamMessage[] = []
    if (job !== undefined) {
      const { log = this.#log, ...rest } = job
      const { text, isGap } = newIn(this.#log, log)
      if (text !== '') messages.push({ event: 'log', data: JSON.stringify({ text, isGap }) })
      const record = recordJson(rest)
      if (record !== this.#record) messages.push({ event: 'job', data: record })
      this.#log = log
      this.#record = record
    }
    return this.hasEnded ? [...messages, endMessage] : messages
  }

  opening(): StreamMessage[] {
    const log = { event: 'log', data: JSON.stringify({ text: this.#log, isGap: false }) }
    return [
      ...(this.#record === '' ? [] : [{ event: 'job', data: this.#record }]),
      ...(this.#log === '' ? [] : [log]),
      ...(this.hasEnded ? [endMessage] : []),
    ]
  }
}
