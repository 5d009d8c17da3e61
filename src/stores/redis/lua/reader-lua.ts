/** A script that only reads one shard: what comes before its text. */

import type { QueueKind } from '../../contract/queue-settings.js'
import { orderedJobs } from './ordered-lua.js'
import { jobs, type ShardScript, shardScript } from './prelude.js'
import { readyJobs } from './ready-lua.js'

const guard = `
if call('EXISTS', META) == 0 then return redis.error_reply('MILLRACE unknown') end
`

const parts = {
  plain: { jobs: jobs + readyJobs, guard: `${guard}know_order()\n` },
  ordered: { jobs: orderedJobs + readyJobs, guard: `${guard}know_form()\n` },
}

/** Refuses `unknown`. */
export function reader(name: string, kind: QueueKind, text: string): ShardScript {
  return unguardedReader(name, kind, parts[kind].guard + text)
}

/** The same without a guard: it is given shards that may not be there. */
export function unguardedReader(name: string, kind: QueueKind, text: string): ShardScript {
  return shardScript(name, kind, parts[kind].jobs + text, { readOnly: true })
}
