/** Findings about schedules, for `doctor`: those that the current key has not sealed, which stop with the next change of the seal. */

import { sealingKeyOf } from '../../../client/schedules/schedule-definition.js'
import { allSchedules } from '../../../client/store-facets.js'
import type { Packing } from '../../../core/packing/packing.js'
import type { Mill } from '../../../mill/mill.js'
import type { StoredQueue } from '../../../stores/contract/queue-settings.js'
import type { StoredSchedule } from '../../../stores/contract/schedules.js'
import type { FsckFinding } from '../../../stores/contract/store-health.js'

const mostNamed = 10

/** The findings about all schedules; none if the store keeps no schedules. A store without queues has none, and is not made. */
export async function scheduleFindings(mill: Mill, stored: readonly StoredQueue[]): Promise<FsckFinding[]> {
  const { look, packing } = mill.adminParts
  if (stored.length === 0) return []
  const { schedules } = await look()
  return schedules === undefined ? [] : judgeSchedules(await allSchedules(schedules), packing)
}

/** Judges the seals of schedules, of which the first ten are named. Pure. */
function judgeSchedules(
  stored: readonly Pick<StoredSchedule, 'definition'>[],
  packing: Pick<Packing, 'currentKey' | 'lackFor'>,
): FsckFinding[] {
  const { currentKey } = packing
  const now = currentKey === undefined ? 'nothing is sealed now' : `\`seal.current\` is '${currentKey}'`
  const texts = stored.flatMap(({ definition }) => {
    const { name, declaredBy, job } = definition
    const key = sealingKeyOf(definition)
    if (key === currentKey) return []
    const remedy =
      declaredBy === undefined ? 'set it anew by `mill.schedules.set()`' : 'start a worker, which stores it anew,'
    if (key === undefined)
      return `schedule '${name}' is not sealed, and ${now}: ${remedy} before you set \`seal.only\`, which refuses its jobs.`
    const isSealed = `schedule '${name}' is sealed by key '${key}'`
    if (packing.lackFor(job.payload, job.codec) !== undefined)
      return `${isSealed}, which this configuration lacks: no worker with it enqueues its jobs. Add the key to \`seal.keys\` again, or set the schedule anew.`
    return `${isSealed}, and ${now}: ${remedy} before you remove that key.`
  })
  const others = texts.length - mostNamed
  if (others > 0) texts.splice(mostNamed, others, `${others} more schedules are not sealed as they would be now.`)
  return texts.map((text) => ({ level: 'warning', what: 'schedules', text }))
}
