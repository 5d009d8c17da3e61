/**
 * A worker process of the proof `schedules`: it looks for due ticks over and over, as fast as it can, until it is
 * killed.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { jsonCodec } from 'millrace'
import { Events } from '#src/core/events.js'
import { Packing } from '#src/core/packing/packing.js'
import { systemClock, systemRandom } from '#src/core/platform/clock.js'
import { createIdSource } from '#src/core/values/ids.js'
import { ScheduleLead } from '#src/workers/schedule-loop.js'
import { queue, type SiteWords, storeAt } from './schedule-site.js'

/** The message to its parent. */
export type LeadWord = { readonly isLead: boolean }

const store = storeAt(JSON.parse(process.argv[2]!) as SiteWords)
await store.open([queue])
const surroundings = { clock: systemClock, random: systemRandom, packing: new Packing(jsonCodec) }
const lead = new ScheduleLead(
  { ...surroundings, worker: `worker-${process.pid}`, events: new Events(), newId: createIdSource(systemClock) },
  store.schedules!,
)
let wasLead: boolean | undefined
for (;;) {
  const { isLead } = await lead.look()
  if (isLead !== wasLead) process.send!({ isLead } satisfies LeadWord)
  wasLead = isLead
  await delay(2)
}
