/** The claim scripts: the one atomic step in which jobs are recovered, promoted and taken. */

import { crashes } from '../lua/crash-lua.js'
import { scriptPair } from '../lua/script-kinds.js'
import { setBack } from '../lua/set-back-lua.js'
import { claimLoop } from './claim-loop-lua.js'
import { orderedClaim } from './claim-ordered-lua.js'
import { plainClaim } from './claim-plain-lua.js'

/**
 * KEYS: those of each shard asked, one after the other, and what `throttle-gate-lua.ts` says.
 * ARGV: worker, alone (1 or 0), heads (1 or 0), most bytes, gate (`throttle-gate-lua.ts`), jobs that the first queue has granted
 * before, and what they weigh; of each shard the number of its queue (in the order in which they are asked), its limit, lease
 * in ms, and most payloads of an id (0: all; of no meaning for a plain queue).
 * Returns { now, grants, whether nothing more may be granted (1 or 0), waits, crashed, buried, heads, more, weight of all, expired }.
 * grants: index of the shard that granted, fence, jobs, pasts, errors, checkpoints; of a shard perhaps several in a row.
 * jobs is one text: of each job its id and NUL, the length of its record in 3 bytes, and the record; of an ordered one then the
 * length of its payloads in 4 bytes, the payloads (as in `claimed-payloads`; none where the one is in the record), and `m` where
 * some were left behind, else `.`.
 * pasts and errors: none, or of each job its past, and its error behind `=`, or ''. checkpoints: of each job that has one its
 * number among the jobs, from 0, and that.
 * waits: index, reason, forMs or -1, lead (1 or 0) · crashed, buried: see `crash` · expired: index, id, task · heads: per shard the age in ms, or -1.
 *
 * The first queue that grants is filled from its shards up to the limit of each, less what those before it granted, and until
 * it has enough bytes; of `exclusive: 'shard'` one shard only. Refuses `unknown`, and `limited` where a
 * shard is limited otherwise than it is given.
 */
const claims = (name: string, isGated: boolean) =>
  scriptPair(
    name,
    { plain: claimLoop(plainClaim, isGated), ordered: claimLoop(orderedClaim, isGated) },
    {
      rare: { plain: plainClaim.rare + crashes + setBack, ordered: orderedClaim.rare + crashes + setBack },
      whenFull: true,
    },
  )

export const claimScripts = claims('claim', false)
/** For queues that have a throttle. */
export const claimGatedScripts = claims('claim-gated', true)
