/** The extend script: renews leases of one shard, and stores what beats report. */

import { mostLogBytes } from '../../../core/job-log.js'
import { beatNotes } from '../lua/beats-lua.js'
import { shardScript, withJobs } from '../lua/prelude.js'
import { isSetBack, setBack } from '../lua/set-back-lua.js'

/**
 * KEYS: those of one shard.
 * ARGV: for each item id, fence, lease in ms, and its beat or ''. A beat is, with NUL between the parts: how many ms
 * ago the run started, host, pid, progress, an empty part, boot, pidns and ticks. After a beat come the checkpoint in
 * its stored form and the text to add to the log. Empty parts leave the stored ones unchanged.
 * The note `b` has the same parts, but the instant of the first start, and in the fifth place that of the last beat.
 * Returns one letter per item: o ok, l lost, c cancel. Refuses `unknown`. Never shortens a lease.
 */
const text = String.raw`
local form = call('HMGET', META, 'kind', 'seenAt')
if not form[1] then return redis.error_reply('MILLRACE unknown') end
if ${isSetBack('form[2]')} then turn_back(form[2]) end
call('HSET', META, 'seenAt', now)
local answers = {}
local n = 1
while n <= #ARGV do
  local id, beat = ARGV[n], ARGV[n + 3]
  local claim = call('HGET', CLAIMS, id)
  if not claim or sub(claim, 1, 7) ~= pack('>I7', tonumber(ARGV[n + 1])) then
    answers[#answers + 1] = 'l'
  else
    local flags = byte(claim, 14) - 64
    local ends_at, was = now + tonumber(ARGV[n + 2]), flags
    if has(flags, OWNLEASE) then call('ZADD', LEASES, 'GT', ends_at, id)
    -- A half-executed script may have left the claim without its shared lease.
    elseif ends_at > tonumber(call('ZSCORE', LEASES, '\0' .. sub(claim, 1, 7)) or 0) then
      leave_lease(sub(claim, 1, 7), 1)
      call('ZADD', LEASES, ends_at, id)
      flags = flags + OWNLEASE
    end
    if beat ~= '' then
      local said, before = read_beat(beat), read_beat(call('HGET', NOTES, 'b' .. id) or '')
      if said[1] ~= '' then said[1] = before[1] ~= '' and before[1] or started_at(said[1]) end
      for i = 1, 8 do
        if said[i] == '' then said[i] = before[i] end
      end
      said[5] = started_at(0)
      call('HSET', NOTES, 'b' .. id, table.concat(said, '\0'))
      if ARGV[n + 4] ~= '' then call('HSET', NOTES, 'k' .. id, ARGV[n + 4]) end
      if ARGV[n + 5] ~= '' then write_log(id, ARGV[n + 5]) end
      if not has(flags, BEATEN) then flags = flags + BEATEN end
    end
    if flags ~= was then call('HSET', CLAIMS, id, with_flags(claim, flags)) end
    answers[#answers + 1] = has(flags, CANCEL) and 'c' or 'o'
  end
  n = n + (beat == '' and 4 or 6)
end
return table.concat(answers)
`

/** The translation of `core/job-log`. */
const log = String.raw`
local function write_log(id, more)
  local log = (call('HGET', NOTES, 'l' .. id) or '') .. more
  -- Keeps the end of the log, from the start of a character on: other bytes of a character are 10xxxxxx.
  if #log > ${mostLogBytes} then log = sub(log, find(log, '[^\128-\191]', -${mostLogBytes}) or #log + 1) end
  call('HSET', NOTES, 'l' .. id, log)
end
`

export const extendScript = shardScript('extend', 'plain', withJobs(text, beatNotes + log + setBack), {
  whenFull: true,
})
