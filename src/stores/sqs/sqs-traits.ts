/** The traits of the SQS store, known before one is opened or its code loaded. */

import type { StoreTraits } from '../contract/store.js'
import { longestHiddenMs, mostBatchBytes, mostEntries } from './client/sqs-api.js'

/** A hundred years: a delay is made of as many messages as it takes. */
const maxDelayMs = 100 * 365 * 86_400_000
/** The bytes of a job's envelope besides its payload: its id, task, group and times. */
const envelopeBytes = 4_096
/** Of the time for which SQS hides a message: a message may be here for a while before its claim hides it for the lease. */
const leaseRoomMs = 900_000

export const sqsTraits: StoreTraits = {
  name: 'sqs',
  ordered: true,
  merges: false,
  fifo: true,
  priority: false,
  groups: true,
  inTurns: false,
  throttled: false,
  scheduled: false,
  limited: false,
  shared: true,
  replicated: false,
  remote: true,
  metered: true,
  maxBatch: mostEntries,
  maxClaim: mostEntries,
  maxDelayMs,
  maxLeaseMs: longestHiddenMs - leaseRoomMs,
  maxHoldMs: longestHiddenMs,
  maxPayloadBytes: mostBatchBytes - envelopeBytes,
  inOrder: false,
  exactEnqueue: false,
  expires: false,
  fields: false,
  deaths: false,
  fenced: false,
  tellsCrashes: false,
  rings: false,
  exactDepth: false,
  beatsFromThread: false,
}
