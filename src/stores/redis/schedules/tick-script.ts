/** The tick script: a schedule enqueues its jobs and moves on to its next tick, both or neither. */

import { enqueueOrderedText } from '../enqueue/enqueue-ordered-script.js'
import { enqueueText } from '../enqueue/enqueue-script.js'
import { withOrderedJobs } from '../lua/ordered-lua.js'
import { shardScript, withJobs } from '../lua/prelude.js'
import type { ScriptPair } from '../lua/script-kinds.js'
import { scheduleRecords } from './redis-schedule-record.js'

/**
 * KEYS: those of the enqueue script, then those of the schedules of the shard.
 * ARGV: those of the enqueue script, for one call or none; then name; revision; the due tick, the next one, and the
 * last one that is done (-1 each for none); the id of the last job; the id whose presence is the reason to skip (''
 * each for none); the number of jobs; the number of ticks left out as skipped and as missed.
 * Returns 'lost', 'skipped', or the letters of the jobs. If these are 'f' or 'g', nothing was done. Refuses `unknown`
 * and `moved`.
 */
const before = (isThere: string) => `
if call('EXISTS', META) == 0 then return redis.error_reply('MILLRACE unknown') end
if call('HEXISTS', META, 'closed') == 1 then return redis.error_reply('MILLRACE moved') end
${scheduleRecords}
local name, revision, due_at, next_at, last_at, last_id, unless, count, skips, misses = unpack(ARGV, #ARGV - 9)
local schedule = read_schedule(name)
if not schedule or schedule.revision ~= revision or schedule.next ~= due_at then return 'lost' end
local function step(added, left_out)
  schedule.next = next_at
  if last_at ~= '-1' then schedule.last = last_at end
  if added > 0 then schedule.last_id = last_id end
  schedule.ticked, schedule.skipped, schedule.missed = schedule.ticked + added, schedule.skipped + left_out, schedule.missed + misses
  write_schedule(schedule)
end
if count == '0' then
  step(0, skips)
  return ''
end
if unless ~= '' and ${isThere} then
  step(0, skips + count)
  return 'skipped'
end
`

const after = `
local first = sub(answers[1], 1, 1)
if first ~= 'f' and first ~= 'g' then step(tonumber(count), skips) end
return answers[1]
`

/** Lua for whether the job `unless` waits or runs. */
const plainIsThere =
  "(function() local j = job(unless) return j and (j.claim or (j.state ~= 'c' and j.state ~= 'd')) end)()"
const orderedIsThere = "call('HEXISTS', JOBS, unless) == 1"

export const tickScripts: ScriptPair = {
  plain: shardScript('tick', 'plain', withJobs(before(plainIsThere) + enqueueText + after)),
  ordered: shardScript('tick-ordered', 'ordered', withOrderedJobs(before(orderedIsThere) + enqueueOrderedText + after)),
}
