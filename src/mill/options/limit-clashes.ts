/** The clashes of limits: contradictions in the throttles and bounds of declared queues. */

import type { ConfigIssue } from '../../core/errors.js'
import type { Queue } from '../../core/queue/queue.js'
import { sameThrottle, type Throttle, throttleText } from '../../core/queue/throttle.js'

export function limitClashes(queues: readonly Queue[]): ConfigIssue[] {
  return [...queues.flatMap(spreadGroups), ...unlikeScopes(queues)]
}

/** The running jobs of a group are counted in one place, so their queue must have one shard. */
function spreadGroups({ name, maxRunning, shards, ordered }: Queue): ConfigIssue[] {
  if (typeof maxRunning !== 'object' || shards === 1) return []
  const many = ordered ? `its ${shards} shards (5 if an ordered queue has no \`shards\`)` : `its ${shards} shards`
  const message = `cannot be \`{ perGroup }\` over ${many}: set \`shards: 1\`, or give a number for all groups together`
  return [{ path: `queues.${name}.maxRunning`, message }]
}

/** Compares each queue with the first one of its scope. */
function unlikeScopes(queues: readonly Queue[]): ConfigIssue[] {
  const firsts = new Map<string, { readonly queue: string; readonly throttle: Throttle }>()
  return queues.flatMap(({ name, throttle }) => {
    if (throttle === undefined) return []
    const first = firsts.get(throttle.scope)
    if (first === undefined) firsts.set(throttle.scope, { queue: name, throttle })
    if (first === undefined || sameThrottle(first.throttle, throttle)) return []
    const message = `must be the same as that of queue '${first.queue}', as the two share the scope '${throttle.scope}': ${throttleText(first.queue, first.throttle)}; got ${throttleText(name, throttle)}`
    return [{ path: `queues.${name}.throttle`, message }]
  })
}
