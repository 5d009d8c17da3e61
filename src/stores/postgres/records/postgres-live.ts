/** Live messages of a Postgres store: they are rows, and who watches is told of new ones. */

import type { LiveMessages } from '../../contract/live-messages.js'
import { liveMessages } from '../../sql/live-watches.js'
import { isWatched, publishLive, readLive, unwatchLive, watchLive } from '../../sql/sql-live.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { tellAll, topics } from '../work/postgres-ring.js'
import type { PostgresWait } from '../work/postgres-wait.js'
import type { StepRunner } from './step-runner.js'

interface LiveParts {
  readonly connection: PostgresConnection
  readonly runner: StepRunner
  readonly wait: PostgresWait
  refuseClosed(): void
  /** Resolves when the schema is there. */
  ready(): Promise<void>
}

/** `closing` aborts when the store is closed. */
export function postgresLive(
  { connection, runner, wait, refuseClosed, ready }: LiveParts,
  closing: AbortSignal,
): LiveMessages {
  const run: StepRunner['run'] = async (changes, of) => {
    refuseClosed()
    await ready()
    return runner.run(changes, of)
  }
  return liveMessages(
    {
      refuseClosed,
      isWatched: (queue) => run(undefined, (now) => isWatched(queue, now)),
      async publishLive(queue, message) {
        const isRead = await run('live', (now) => publishLive(queue, message, now))
        if (isRead) connection.call(tellAll, [topics.live]).catch(() => {})
        return isRead
      },
      readLive: (queue, after) => run(undefined, () => readLive(queue, after)),
      watchLive: (queue, watcher, forMs) => run('live', (now) => watchLive(queue, watcher, forMs, now)),
      // Also while the store is being closed.
      unwatchLive: (queue, watcher) => runner.run('live', () => unwatchLive(queue, watcher)),
      async listen(over) {
        await ready()
        return wait.ear([topics.live], over)
      },
    },
    closing,
  )
}
