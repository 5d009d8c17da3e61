/** The assembly of a mill: makes its parts from its options and its store. Opens nothing. */

import type { AdminParts } from '../client/admin/queue-admin.js'
import { Client, type ClientParts, TransactionEnqueue } from '../client/enqueue/client.js'
import { DraftWarnings } from '../client/enqueue/draft-warnings.js'
import type { DraftEnvironment } from '../client/enqueue/job-draft.js'
import { Sender } from '../client/enqueue/sender.js'
import { type HandleParts, handlePartsOf, StoredJobHandle } from '../client/jobs/stored-job-handle.js'
import { ScheduleAdmin } from '../client/schedules/schedule-admin.js'
import { joinsOf } from '../client/store-facets.js'
import { Events } from '../core/events.js'
import type { Clock, Random } from '../core/platform/clock.js'
import type { Surroundings } from '../core/surroundings.js'
import type { EnqueueItem } from '../core/task/middleware.js'
import { createIdSource } from '../core/values/ids.js'
import type { ChildClient } from '../runtime/run/child-calls.js'
import { joinedMembers } from '../runtime/run/joined-members.js'
import type { Store } from '../stores/contract/store.js'
import { HandlerContext } from './handler-context.js'
import { logEvents } from './log-events.js'
import { MillWork } from './mill-work.js'
import type { CheckedOptions } from './options/mill-options.js'
import { StoreConnection } from './store-connection.js'
import type { StoreSource } from './store-source.js'

export interface MillParts {
  readonly options: CheckedOptions
  /** Where the store is, and how it is opened. */
  readonly source: StoreSource
  readonly surroundings: Surroundings
  /** The store, opened when a call first needs it. */
  readonly connection: StoreConnection
  /** Enqueues. */
  readonly client: Client
  /** Enqueues within the user's own transactions. */
  readonly transactions: TransactionEnqueue
  /** What the handles to jobs need. */
  readonly handleParts: HandleParts
  /** What the administration of a queue needs. */
  readonly adminParts: AdminParts
  readonly schedules: ScheduleAdmin
  /** Its workers, and what else takes jobs. */
  readonly work: MillWork
}

/** The parts of a mill. `clock` and `random` are those of all of them. */
export function assembleMill(options: CheckedOptions, source: StoreSource, clock: Clock, random: Random): MillParts {
  const { registry, packing, tasksElsewhere, maxPayloadBytes, idempotencyMs, middleware } = options
  const events = new Events()
  logEvents(events, options.logger)
  const newId = createIdSource(clock)
  const surroundings = { events, clock, random, packing, newId }
  const connection = new StoreConnection(surroundings, registry, source, options.history)
  const { opened, closing } = connection
  const handleParts = handlePartsOf(opened, { ...surroundings, registry, maxPayloadBytes }, closing)
  const warnings = new DraftWarnings(events)
  const rulesOf = ({ traits }: Store): DraftEnvironment => {
    return { registry, tasksElsewhere, packing, traits, maxPayloadBytes, idempotencyMs, warnings, newId }
  }
  const clientParts: Omit<ClientParts, 'sender'> = {
    rules: async () => rulesOf(await opened()),
    middleware,
    events,
    handle: (queue, id, outcome) => new StoredJobHandle(handleParts, queue, id, outcome),
  }
  const declared = options.schedules && { by: options.schedulesOf, schedules: options.schedules }
  const schedules = new ScheduleAdmin(surroundings, opened, clientParts, declared)
  const client = new Client({ ...clientParts, sender: new Sender(opened, () => clock.mono()) })
  const transactions = new TransactionEnqueue(clientParts, () => connection.ready, rulesOf)
  const repeater = { enqueue: (item: EnqueueItem) => client.enqueueItem(item), idempotencyMs }
  const look = () => connection.looked()
  const adminParts = { connect: opened, look, packing, registry, repeater, closing, clock }
  const context = new HandlerContext(options.context, clock, random)
  const children = childClient({ client, transactions, context, surroundings, connect: opened })
  const work = new MillWork({
    ...{ options, source, surroundings, connection, clientParts, children, context, schedules },
  })
  return {
    ...{ options, source, surroundings, connection, client, transactions },
    ...{ handleParts, adminParts, schedules, work },
  }
}

/** The calls of handlers to their mill, and the context of the mill. */
function childClient({
  client,
  transactions,
  context,
  surroundings,
  connect,
}: {
  readonly client: Client
  readonly transactions: TransactionEnqueue
  readonly context: HandlerContext
  readonly surroundings: Surroundings
  readonly connect: () => Promise<Store>
}): ChildClient {
  const { packing } = surroundings
  return {
    get context() {
      return context.value
    },
    encode: (value) => packing.encode(value),
    contentHash: (beside) => packing.contentHash(beside),
    enqueueItem: (item) => client.enqueueItem(item),
    enqueueItems: (items) => client.enqueueItems(items),
    flow: (build, call) => client.flow(build, call),
    enqueueIn: (tx, item) => transactions.enqueue(tx, item),
    completeIn: (tx, claim) => transactions.complete(tx, claim),
    joined: async (run, sets) => joinedMembers(surroundings, joinsOf(await connect()), run, sets),
  }
}
