/** The store contract: every case that a store must pass, by concern. */

import { claiming } from './claiming.js'
import { closing } from './closing.js'
import type { ContractConcern } from './contract-case.js'
import { depth } from './depth.js'
import { enqueueing } from './enqueueing.js'
import { idempotency } from './idempotency.js'
import { leasing } from './leasing.js'
import { morgue } from './morgue.js'
import { opening } from './opening.js'
import { recordsActions } from './records-actions.js'
import { recordsListing } from './records-listing.js'
import { retention } from './retention.js'
import { settling } from './settling.js'
import { waiting } from './waiting.js'
import { workersRegistry } from './workers-registry.js'

export const storeContract: readonly ContractConcern[] = [
  opening,
  enqueueing,
  idempotency,
  claiming,
  leasing,
  settling,
  retention,
  depth,
  waiting,
  recordsListing,
  recordsActions,
  morgue,
  workersRegistry,
  closing,
]
