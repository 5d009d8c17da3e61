/** The store contract: every case that a store must pass, by concern. */

import { adopting } from './adopting.js'
import { checkpoints } from './checkpoints.js'
import { claimBytes } from './claim-bytes.js'
import { claiming } from './claiming.js'
import { clockOrder } from './clock-order.js'
import { clockSteps } from './clock-steps.js'
import { closing } from './closing.js'
import type { ContractConcern } from './contract-case.js'
import { crashing } from './crashing.js'
import { depth } from './depth.js'
import { enqueueing } from './enqueueing.js'
import { groupLimits } from './group-limits.js'
import { holding } from './holding.js'
import { holds } from './holds.js'
import { idempotency } from './idempotency.js'
import { lanes } from './lanes.js'
import { leading } from './leading.js'
import { leasing } from './leasing.js'
import { limitedReshards } from './limited-reshards.js'
import { limits } from './limits.js'
import { morgue } from './morgue.js'
import { opening } from './opening.js'
import { orderedCancels } from './ordered-cancels.js'
import { orderedClaims } from './ordered-claims.js'
import { orderedEnds } from './ordered-ends.js'
import { orderedExclusive } from './ordered-exclusive.js'
import { orderedMerging } from './ordered-merging.js'
import { orderedMorgue } from './ordered-morgue.js'
import { orderedShards } from './ordered-shards.js'
import { recordsActions } from './records-actions.js'
import { recordsListing } from './records-listing.js'
import { restarting } from './restarting.js'
import { retention } from './retention.js'
import { ringing } from './ringing.js'
import { runs } from './runs.js'
import { settling } from './settling.js'
import { suspects } from './suspects.js'
import { throttleArming } from './throttle-arming.js'
import { throttleRests } from './throttle-rests.js'
import { throttleScopes } from './throttle-scopes.js'
import { throttleWaits } from './throttle-waits.js'
import { throttling } from './throttling.js'
import { waiting } from './waiting.js'
import { workersRegistry } from './workers-registry.js'

export const storeContract: readonly ContractConcern[] = [
  opening,
  enqueueing,
  idempotency,
  claiming,
  claimBytes,
  clockOrder,
  leasing,
  crashing,
  suspects,
  leading,
  settling,
  runs,
  retention,
  depth,
  waiting,
  ringing,
  recordsListing,
  recordsActions,
  morgue,
  workersRegistry,
  holding,
  adopting,
  checkpoints,
  restarting,
  orderedMerging,
  orderedClaims,
  orderedEnds,
  orderedCancels,
  orderedMorgue,
  orderedShards,
  orderedExclusive,
  throttling,
  throttleRests,
  throttleScopes,
  throttleWaits,
  throttleArming,
  clockSteps,
  lanes,
  groupLimits,
  limits,
  limitedReshards,
  holds,
  closing,
]
