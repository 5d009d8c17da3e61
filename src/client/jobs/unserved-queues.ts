/**
 * Queues that no worker serves while somebody waits for results of their jobs: each is reported once. Such a wait may never
 * end, and nothing else would say so.
 */

import type { Events } from '../../core/events.js'
import type { Store } from '../../stores/contract/store.js'

/** A worker that was started at the same time as the wait has reported by then. */
const longMs = 10_000

/** A wait for a result. */
export interface ResultWait {
  readonly queue: string
  readonly id: string
  /** On the monotonic clock; undefined: its queue was looked at, or nobody waits for a result. */
  since: number | undefined
}

/** The queues that live workers serve; undefined if the store does not know, or cannot say it now. */
export async function servedQueues({ workers }: Store): Promise<ReadonlySet<string> | undefined> {
  const live = await workers?.list().catch(() => undefined)
  return live && new Set(live.flatMap(({ queues }) => queues))
}

/** The remedy, as the warning says it. */
export function unservedText(queue: string): string {
  return `no worker serves queue '${queue}': start one, by \`npx millrace work --queues ${queue}\`, or by mill.worker().start() in this process`
}

export class UnservedQueues {
  readonly #events: Events
  readonly #mono: () => number
  readonly #reported = new Set<string>()

  constructor(events: Events, mono: () => number) {
    this.#events = events
    this.#mono = mono
  }

  /** Reports the queues of the waits that have lasted for long. Each wait leads to one look: a worker may leave for a while. */
  async report(store: Store, waits: Iterable<ResultWait>): Promise<void> {
    const longSince = this.#mono() - longMs
    const unknown = new Map<string, ResultWait>()
    for (const wait of waits) {
      if (wait.since === undefined || wait.since > longSince) continue
      wait.since = undefined
      if (!this.#reported.has(wait.queue)) unknown.set(wait.queue, wait)
    }
    const served = unknown.size === 0 ? undefined : await servedQueues(store)
    if (served === undefined) return
    for (const { queue, id } of unknown.values()) if (!served.has(queue)) this.#tell(queue, id)
  }

  #tell(queue: string, id: string): void {
    this.#reported.add(queue)
    // Node prints it: there is neither a logger nor a listener, and a caller that waits in silence takes the queue for hung.
    if (!this.#events.has('queue.unserved'))
      process.emitWarning(`the result of job '${id}' has not come for 10s, and ${unservedText(queue)}.`, {
        type: 'MillraceWarning',
        code: 'MILLRACE_QUEUE_UNSERVED',
      })
    this.#events.emit('queue.unserved', { queue, id })
  }
}
