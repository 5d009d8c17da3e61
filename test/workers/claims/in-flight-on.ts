/** The jobs in flight of a worker on a store, with all that they need beside them, on a clock in the hand. */

import type { Store } from 'millrace/store'
import { onTestFinished } from 'vitest'
import { Events } from '#src/core/events.js'
import type { checkOptions } from '#src/mill/options/mill-options.js'
import { LeaseKeeper } from '#src/runtime/leases/lease-keeper.js'
import { ClaimDecoder } from '#src/runtime/run/claim-decoder.js'
import { Executor } from '#src/runtime/run/executor.js'
import { Settler } from '#src/runtime/run/settlement.js'
import { SoloGate } from '#src/runtime/solo-gate.js'
import { DepartureSizes, Prefetch } from '#src/workers/claims/claim-plan.js'
import { InFlight } from '#src/workers/claims/in-flight.js'
import { GrouplessJobs, LimitedQueues } from '#src/workers/claims/limited-queues.js'
import { Punctuality } from '#src/workers/claims/punctuality.js'
import { EndHooks } from '#src/workers/end-hooks.js'
import { Slots } from '#src/workers/slots.js'
import { givenSurroundings } from '../../runtime/given-surroundings.js'
import { notesOn } from '../../runtime/updates-on.js'

export function inFlightOn(given: {
  readonly store: Store
  readonly options: ReturnType<typeof checkOptions>
  readonly slots: number
  readonly prefetched: number
  readonly mono: () => number
  readonly after?: (ms: number, work: () => void) => () => void
  readonly limited?: LimitedQueues
}) {
  const { store, options, mono, after = () => () => {}, limited = new LimitedQueues([]) } = given
  const events = new Events()
  const keeper = new LeaseKeeper({ store, events, mono, host: 'h', pid: 1 })
  onTestFinished(() => keeper.stop())
  const surroundings = givenSurroundings({ events, mono, packing: options.packing })
  const settler = new Settler(surroundings, store)
  const shared = { ...options, ...surroundings }
  const notes = notesOn(store, events)
  const prefetch = new Prefetch(given.prefetched)
  const punctuality = new Punctuality(limited, options.registry)
  const limits = { maxResultBytes: 1_000, maxDelayMs: 1_000_000, canHold: true }
  const slots = new Slots(given.slots)
  const inFlight = new InFlight({
    ...{ ...shared, settler, keeper, prefetch, limited, punctuality, after, mono, notes },
    slots,
    executor: (report) => new Executor(surroundings, options.middleware, report),
    soloGate: new SoloGate(),
    sizes: new DepartureSizes(options.registry, limited, prefetch),
    rules: { ...options, ...limits, now: () => 0, resultDropped: () => {} },
    hooks: new EndHooks([], events),
    groupless: new GrouplessJobs(surroundings, options.registry, limited),
    decoder: new ClaimDecoder(options.registry, options.packing, notes, () => 0),
    deferred: () => {},
    processes: undefined,
    maxBlockMs: 30_000,
  })
  return { inFlight, slots, events, keeper, settler, limited, punctuality }
}
