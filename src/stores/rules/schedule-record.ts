/**
 * The record of a schedule: its definition as text, for stores that keep text, and the decisions that every store makes
 * alike: who leads, and the id and the jitter of a tick. Pure.
 */

import { tickName } from '../../core/job/job-origin.js'
import { toleratedStepMs } from '../../core/platform/clock.js'
import type { Payload } from '../../core/values/codec.js'
import type { ScheduleDefinition } from '../contract/schedules.js'
import { shardOf } from './payloads.js'

/** Bytes are in an object, which distinguishes them from text. */
type StoredValue = string | { readonly base64: string }

export function definitionText({ job, ...rest }: ScheduleDefinition): string {
  const { payload, meta, ...more } = job
  return JSON.stringify({
    ...rest,
    job: { ...more, payload: stored(payload), ...(meta === undefined ? {} : { meta: stored(meta) }) },
  })
}

/** Undefined for an unreadable definition: one damaged schedule must not stop the others. */
export function definitionIn(text: string): ScheduleDefinition | undefined {
  try {
    const { job, ...rest } = JSON.parse(text) as ScheduleDefinition
    const { payload, meta, ...more } = job
    if (typeof rest.name !== 'string' || typeof rest.queue !== 'string' || typeof rest.rule !== 'object')
      return undefined
    return {
      ...rest,
      job: { ...more, payload: restored(payload), ...(meta === undefined ? {} : { meta: restored(meta) }) },
    }
  } catch {
    return undefined
  }
}

/** The id that decides the shard of a schedule: the id of its job, otherwise its name. */
export function placeOf({ name, job }: Pick<ScheduleDefinition, 'name' | 'job'>): string {
  return job.id ?? name
}

/**
 * The worker that looks for due schedules, since when, and until when without further news. Instants are on the wall
 * clock.
 */
export interface ScheduleLeadership {
  readonly worker: string
  readonly seenAt: number
  readonly until: number
}

/** The lead after this worker has asked: the worker itself, or another whose lead has not lapsed. */
export function scheduleLeadAfter(
  lead: ScheduleLeadership | undefined,
  worker: string,
  leadMs: number,
  now: number,
): ScheduleLeadership {
  const own = { worker, seenAt: now, until: now + leadMs }
  if (lead === undefined || lead.worker === worker) return own
  // The clock was set back: the lead lasts from now on as long as it was to last from then on.
  const held =
    lead.seenAt > now + toleratedStepMs ? { ...lead, seenAt: now, until: lead.until - lead.seenAt + now } : lead
  return held.until <= now ? own : held
}

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

function stored(value: Payload): StoredValue {
  return typeof value === 'string' ? value : { base64: Buffer.from(value).toString('base64') }
}

function restored(value: unknown): Payload {
  const given = value as StoredValue
  return typeof given === 'string' ? given : Buffer.from(given.base64, 'base64')
}
