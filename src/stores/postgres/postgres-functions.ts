/** All functions that a Postgres store has in the database, in the order in which they are made. */

import { repairFunctions } from './health/postgres-fsck-repair.js'
import { reportFunctions } from './joins/join-reports.js'
import { graphFunctions } from './joins/postgres-graph.js'
import { jobStepFunctions } from './joins/postgres-job-steps.js'
import { joinFunctions } from './joins/postgres-joins.js'
import { applyFunctions } from './limits/apply-function.js'
import { laneFunctions, throttleFunctions } from './limits/limit-functions.js'
import { lookFunctions } from './limits/look-function.js'
import { inboxFunctions } from './ordered/inbox-functions.js'
import { orderedAdminFunctions } from './ordered/ordered-admin.js'
import { orderedEndFunctions } from './ordered/ordered-end-functions.js'
import { payloadFunctions } from './ordered/payload-sets.js'
import { pushFunctions } from './ordered/push-functions.js'
import { reshardFunctions } from './ordered/reshard-functions.js'
import { shardClaimFunctions } from './ordered/shard-claim.js'
import { listingFunctions } from './records/listing-functions.js'
import { deathFunctions } from './records/postgres-deaths.js'
import { registryFunctions } from './records/postgres-registry.js'
import { scheduleFunctions } from './records/postgres-schedules.js'
import { recordFunctions } from './records/record-functions.js'
import { freeJobFunctions } from './schema/free-job.js'
import { stateFunctions } from './schema/queue-state.js'
import type { SqlFunction } from './schema/sql-function.js'
import { sqlEnqueue } from './user/sql-enqueue.js'
import { endFunctions } from './work/end-functions.js'
import { enqueueFunctions } from './work/enqueue-functions.js'
import { depthFunctions } from './work/postgres-depth.js'
import { extendFunctions } from './work/postgres-extend.js'
import { nextChange } from './work/postgres-idle.js'
import { recoveryFunctions } from './work/postgres-recovery.js'
import { ringFunctions } from './work/postgres-ring.js'
import { settingsFunctions } from './work/postgres-settings.js'
import { upkeepFunctions } from './work/postgres-upkeep.js'
import { stepFunctions } from './work/step-function.js'

export const postgresFunctions: readonly SqlFunction[] = [
  ...stateFunctions,
  ...freeJobFunctions,
  ...settingsFunctions,
  ...laneFunctions,
  ...lookFunctions,
  ...applyFunctions,
  ...throttleFunctions,
  ...enqueueFunctions,
  ...payloadFunctions,
  ...pushFunctions,
  ...inboxFunctions,
  ...shardClaimFunctions,
  ...orderedEndFunctions,
  ...reshardFunctions,
  ...stepFunctions,
  ...endFunctions,
  ...recoveryFunctions,
  ...extendFunctions,
  ...depthFunctions,
  ...ringFunctions,
  nextChange,
  ...upkeepFunctions,
  ...reportFunctions,
  ...jobStepFunctions,
  ...deathFunctions,
  ...scheduleFunctions,
  ...graphFunctions,
  ...joinFunctions,
  ...registryFunctions,
  ...orderedAdminFunctions,
  sqlEnqueue,
  ...recordFunctions,
  ...repairFunctions,
  ...listingFunctions,
]
