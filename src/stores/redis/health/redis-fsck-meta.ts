/** The settings and counters of a shard in its `meta`, and which of their values are invalid. Pure. */

import type { Finding } from '../../contract/store-health.js'
import type { RedisReply } from '../client/redis-client.js'
import { rowsIn, textIn } from '../client/redis-reply.js'

const counter = /^\d{1,16}$/
const required: Readonly<Record<string, RegExp>> = {
  kind: /^(?:plain|ordered)$/,
  order: /^(?:fifo|lifo)$/,
  maxCrashes: /^\d{1,9}$/,
  seq: counter,
  stamp: counter,
  fence: counter,
  stale: counter,
  processed: counter,
  failed: counter,
  crashed: counter,
}
const optional: Readonly<Record<string, RegExp>> = {
  maxPending: counter,
  resultsCount: counter,
  deadAge: counter,
  deadCount: counter,
  exclusive: /^(?:id|shard)$/,
  merge: /^(?:all|distinct|latest)$/,
  bounds: /^\d*,\d*,\d*$/,
  resharding: /^(?:1|new)$/,
  closed: /^1$/,
  paused: /^1$/,
  draining: /^1$/,
  limited: /^1$/,
  heldUntil: counter,
  pausedGroups: /^1$/,
  shutUntil: counter,
  maxRunning: counter,
  perGroup: counter,
  limits: /^\{.*\}$/,
  limitsTurn: counter,
  turn: counter,
  scope: /^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/,
  by: /^(?:queue|group)$/,
  leadAt: counter,
  suspectLeadAt: counter,
  run: /^[0-9a-f]+(?: \d+)?$/,
  sparesUntil: counter,
  seenAt: counter,
  lostAt: counter,
  expired: counter,
  expiringAt: counter,
  lost: counter,
}

/** `meta`: fields and values, as HGETALL returns them. */
export function metaFaults(meta: RedisReply, what: string): Finding[] {
  const values = new Map(rowsIn(meta, 2).map(([field, value]) => [textIn(field), textIn(value)]))
  const wrong = Object.entries({ ...required, ...optional }).filter(([field, form]) => {
    const value = values.get(field)
    return value === undefined ? required[field] !== undefined : !form.test(value)
  })
  const faults = wrong.map(([field]) => (values.has(field) ? `${field} '${values.get(field)}'` : `no ${field}`))
  for (const [field, at] of [
    ['lead', 'leadAt'],
    ['suspectLead', 'suspectLeadAt'],
  ] as const)
    if (values.has(field) !== values.has(at)) faults.push(`one of ${field} and ${at} alone`)
  const lost = Number(values.get('lost') ?? 0)
  if (faults.length === 0) return lost > 0 ? [lostFinding(lost, what)] : []
  const text = `'meta' holds what cannot be: ${faults.join(', ')}. Calls on this queue fail or give wrong answers.`
  return [{ level: 'error', what, text }]
}

function lostFinding(lost: number, what: string): Finding {
  const text = `claims have passed over ${lost} ${lost === 1 ? 'job' : 'jobs'} whose record was gone, as a torn append-only file leaves them. They did not run; enqueue them again. \`fsck --repair\` begins to count anew.`
  return { level: 'warning', what, text }
}
