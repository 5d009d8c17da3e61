/** The flags of the example: the original's, and its defaults. */

import { parseArgs } from 'node:util'

export const help = `usage: npx jiti throttled-queue.ts [-r <host>] [-p <port>] [-m] [-w <seconds>] [-n <pops>] [-q <queue>] [-e]

Throttled Queue Test Script. Start either a single or multiple processes to see the throttled queue in action.

  -r, --redis-host <host>    the Redis host; without it, SQLite in .millrace/jobs.db, and no server is needed
  -p, --redis-port <port>    the Redis port (6379)
  -m, --moderate             moderate the outbound queue
  -w, --window <seconds>     the window time to test (60)
  -n, --num-hits <pops>      the number of pops allowed in the given window (10)
  -q, --queue <name>         the queue name (testqueue); each keeps the window, pops and -m that it was first given
  -e, --elastic              test variable elastic catch up with moderation
  -h, --help                 show this`

export interface Flags {
  readonly store: string
  readonly queue: string
  readonly windowMs: number
  readonly limit: number
  readonly moderate: boolean
  readonly elastic: boolean
}

export function flagsOf(args: readonly string[]): Flags | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      'redis-host': { type: 'string', short: 'r' },
      'redis-port': { type: 'string', short: 'p', default: '6379' },
      moderate: { type: 'boolean', short: 'm', default: false },
      window: { type: 'string', short: 'w', default: '60' },
      'num-hits': { type: 'string', short: 'n', default: '10' },
      queue: { type: 'string', short: 'q', default: 'testqueue' },
      elastic: { type: 'boolean', short: 'e', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  const host = values['redis-host']
  return {
    store: host === undefined ? 'sqlite:.millrace/jobs.db' : `redis://${host}:${values['redis-port']}`,
    queue: values.queue,
    windowMs: 1_000 * Number(values.window),
    limit: Number(values['num-hits']),
    moderate: values.moderate,
    elastic: values.elastic,
  }
}
