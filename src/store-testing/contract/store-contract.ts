/** The store contract: every case that a store must pass, by concern. */

import { enqueueing } from './enqueue/enqueueing.js'
import { expiring } from './enqueue/expiring.js'
import { idempotency } from './enqueue/idempotency.js'
import { newFields } from './enqueue/new-fields.js'
import { replacing } from './enqueue/replacing.js'
import { scheduleLeads, scheduling } from './enqueue/scheduling.js'
import { ticking } from './enqueue/ticking.js'
import { claimAnswers } from './jobs/claim-answers.js'
import { claimBytes } from './jobs/claim-bytes.js'
import { claiming } from './jobs/claiming.js'
import { clockOrder } from './jobs/clock-order.js'
import { clockSteps } from './jobs/clock-steps.js'
import { crashing } from './jobs/crashing.js'
import { depth } from './jobs/depth.js'
import { expecting } from './jobs/expecting.js'
import { leading } from './jobs/leading.js'
import { leasing } from './jobs/leasing.js'
import { closing, opening } from './jobs/opening.js'
import { restarting } from './jobs/restarting.js'
import { retention } from './jobs/retention.js'
import { ringing } from './jobs/ringing.js'
import { rungClaims } from './jobs/rung-claims.js'
import { runs, settling } from './jobs/settling.js'
import { signalling } from './jobs/signalling.js'
import { stepping } from './jobs/stepping.js'
import { suspects } from './jobs/suspects.js'
import { waiting } from './jobs/waiting.js'
import { joinDeaths } from './joins/join-deaths.js'
import { joinEnds } from './joins/join-ends.js'
import { joining } from './joins/joining.js'
import { waitedLags } from './joins/waited-lags.js'
import { bothThrottles } from './limits/both-throttles.js'
import { groupLimits } from './limits/group-limits.js'
import { groupRates } from './limits/group-rates.js'
import { holds } from './limits/holds.js'
import { lanes } from './limits/lanes.js'
import { limits } from './limits/limits.js'
import { pausedGroups } from './limits/paused-groups.js'
import { recoveredThrottles } from './limits/recovered-throttles.js'
import { releasing } from './limits/releasing.js'
import { saidLimits } from './limits/said-limits.js'
import { throttleScopes } from './limits/throttle-scopes.js'
import { throttleWaits } from './limits/throttle-waits.js'
import { throttleRests, throttling } from './limits/throttling.js'
import { limitedReshards } from './ordered/limited-reshards.js'
import { orderedClaims } from './ordered/ordered-claims.js'
import { orderedDone, orderedEnds } from './ordered/ordered-ends.js'
import { orderedEqualPayloads } from './ordered/ordered-equal-payloads.js'
import { orderedExclusive } from './ordered/ordered-exclusive.js'
import { orderedMerging } from './ordered/ordered-merging.js'
import { orderedCancels, orderedMorgue } from './ordered/ordered-morgue.js'
import { orderedShards } from './ordered/ordered-shards.js'
import { cancelling } from './records/cancelling.js'
import { checkpoints } from './records/checkpoints.js'
import { deaths } from './records/deaths.js'
import { fields } from './records/fields.js'
import { histories } from './records/histories.js'
import { adopting, holding } from './records/holding.js'
import { liveWatching } from './records/live-watching.js'
import { morgue } from './records/morgue.js'
import { recordsActions } from './records/records-actions.js'
import { recordsListing } from './records/records-listing.js'
import { rescheduling } from './records/rescheduling.js'
import { workersRegistry } from './records/workers-registry.js'
import type { ContractConcern } from './scenes/contract-case.js'

export const storeContract: readonly ContractConcern[] = [
  opening,
  saidLimits,
  enqueueing,
  idempotency,
  replacing,
  newFields,
  expiring,
  claiming,
  claimAnswers,
  claimBytes,
  clockOrder,
  leasing,
  crashing,
  suspects,
  leading,
  settling,
  runs,
  retention,
  expecting,
  depth,
  waiting,
  ringing,
  rungClaims,
  recordsListing,
  recordsActions,
  rescheduling,
  cancelling,
  morgue,
  deaths,
  workersRegistry,
  liveWatching,
  histories,
  holding,
  adopting,
  checkpoints,
  fields,
  restarting,
  orderedMerging,
  orderedEqualPayloads,
  orderedDone,
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
  recoveredThrottles,
  clockSteps,
  lanes,
  groupLimits,
  limits,
  limitedReshards,
  holds,
  releasing,
  pausedGroups,
  groupRates,
  bothThrottles,
  scheduling,
  ticking,
  scheduleLeads,
  joining,
  joinEnds,
  joinDeaths,
  waitedLags,
  stepping,
  signalling,
  closing,
]
