/** The surroundings of parts that a test makes by hand. */

import { Events } from '#src/core/events.js'
import { Packing } from '#src/core/packing/packing.js'
import { systemRandom } from '#src/core/platform/clock.js'
import type { WorkerSurroundings } from '#src/core/surroundings.js'
import { jsonCodec } from '#src/core/values/codec.js'
import { createIdSource } from '#src/core/values/ids.js'

type Given = Partial<Omit<WorkerSurroundings, 'clock'>> & {
  readonly mono?: () => number
  readonly now?: () => number
}

/** Both clocks stand at 0 if none is given. */
export function givenSurroundings({ mono = () => 0, now = () => 0, ...given }: Given = {}): WorkerSurroundings {
  const clock = { mono, now }
  return {
    ...{ worker: 'w', events: new Events(), clock, random: systemRandom },
    ...{ packing: new Packing(jsonCodec), newId: createIdSource(clock) },
    ...given,
  }
}
