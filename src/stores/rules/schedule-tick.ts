/** A tick of a schedule: the id of its job, and the jitter by which the job is due later. */

import { tickName } from '../../core/job/job-origin.js'
import { shardOf } from './payloads.js'

/**
 * The id of a tick's job: the schedule's name and the instant. In a plain queue with several shards a number after the
 * id keeps all jobs of a schedule in the schedule's shard.
 */
export function tickId(name: string, at: number, shards: number): string {
  return idBeside(name, tickName(name, at), shards)
}

/** The id, followed by a number if it would otherwise be in another shard than its schedule. */
export function idBeside(name: string, id: string, shards: number): string {
  const shard = shardOf(name, shards)
  let lying = id
  for (let n = 1; shardOf(lying, shards) !== shard; n += 1) lying = `${id}.${n}`
  return lying
}

/** The jitter of a tick, less than `jitterMs`: the same for the same tick, and spread over different schedules. */
export function jitterOf(id: string, jitterMs: number): number {
  return jitterMs === 0 ? 0 : shardOf(id, jitterMs)
}
