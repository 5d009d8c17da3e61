/** A tick of a schedule: the id of its job, and how much later than its instant that is due. */

import { shardOf } from './payloads.js'

/**
 * The id of the job of a tick: the schedule's name and the instant. In a queue of several plain shards all jobs of a schedule
 * lie where the schedule does: a number behind the id sees to that.
 */
export function tickId(name: string, at: number, shards: number): string {
  return idBeside(name, `${name}@${new Date(at).toISOString().replace('.000Z', 'Z')}`, shards)
}

/** The id, with a number behind it where it would else lie in another shard than its schedule. */
export function idBeside(name: string, id: string, shards: number): string {
  const shard = shardOf(name, shards)
  let lying = id
  for (let n = 1; shardOf(lying, shards) !== shard; n += 1) lying = `${id}.${n}`
  return lying
}

/** The jitter of a tick, less than `jitterMs`: always the same for the same tick, and spread over those of different schedules. */
export function jitterOf(id: string, jitterMs: number): number {
  return jitterMs === 0 ? 0 : shardOf(id, jitterMs)
}
