/** The claim scripts: one atomic step recovers, promotes and takes jobs. */

import { crashes } from '../lua/crash-lua.js'
import { scriptPair } from '../lua/script-kinds.js'
import { setBack } from '../lua/set-back-lua.js'
import { claimLoop } from './claim-loop-lua.js'
import { orderedClaim } from './claim-ordered-lua.js'
import { plainClaim } from './claim-plain-lua.js'

/**
 * KEYS: those of each shard asked, one after the other, then those that `throttle-gate-lua.ts` names.
 * ARGV: worker; alone (1 or 0); heads (1 or 0); most bytes; gate (`throttle-gate-lua.ts`); the number and the weight of
 * the jobs that the first queue has granted before; then for each shard the number of its queue (in the order in which
 * they are asked), its limit, its lease in ms, and the most payloads of an id (0: all; unused for a plain queue).
 *
 * Returns { now, grants, whether nothing more may be granted (1 or 0), waits, crashed, buried, heads, more, weight of
 * all jobs granted, expired }.
 * grants: index of the shard, fence, jobs, pasts, errors, checkpoints, expiries; a shard may have several in a row.
 * jobs is one text. Plain: the ids, the lengths of the records and the records, as `grant` of `claim-plain-lua.ts`
 * writes them. Ordered: for each job its id and NUL, the length of its record in 3 bytes, the record, the length of its
 * payloads in 4 bytes, the payloads (as in `claimed-payloads`; none if the only one is in the record), and `m` if some
 * payloads were left behind, otherwise `.`.
 * pasts and errors: empty, or for each job its past, and its error after a `=`, or ''.
 * checkpoints, expiries: for each job that has one, its number among the jobs, from 0, and the checkpoint, or when it
 * expires.
 * waits: index, reason, forMs or -1, lead (1 or 0) · crashed, buried: see `crash` · expired: index, id, task ·
 * heads: per shard the age in ms, or -1.
 *
 * The script fills the claim from the first queue that grants. It takes jobs from the queue's shards up to the limit of
 * each, less the jobs granted before, until the claim has enough bytes. With `exclusive: 'shard'` it takes from one
 * shard only. Refuses `unknown`, and `limited` if the limits of a shard are not those that the caller assumed.
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
/** The claim scripts for queues with a throttle. */
export const claimGatedScripts = claims('claim-gated', true)
