/**
 * The memory of enqueue calls: a call that is sent again gets the same answer as before. The calls of a trip share one
 * entry, under the id of the first: the instant (6 bytes), the number of the calls (2 bytes), the answers of each call
 * with ',' between them; for several calls then a NUL and their ids with NUL between them. Entries are kept for a
 * minute, for at most 10,000 calls.
 */

import { callMemoryCount, callMemoryMs } from '../../rules/bounds.js'

export const remembering = `
-- An unreadable entry is removed like one that is over: nothing may fail after jobs have been written.
local function is_whole(told) return told and #told >= 8 end
local function is_over(told) return unpackn('>I6', told) + ${callMemoryMs} <= now end
-- The remembered answers to these calls, by call id. Goes through all entries: few calls are sent again.
local function remembered_calls(call_ids)
  local wanted, found, entries = {}, {}, call('HGETALL', CALLS)
  for _, id in ipairs(call_ids) do wanted[id] = true end
  for i = 1, #entries, 2 do
    local told = entries[i + 1]
    if is_whole(told) and not is_over(told) then
      local stop = find(told, '\\0', 9, true)
      local next_id = string.gmatch(stop and sub(told, stop + 1) or entries[i], '%Z+')
      for letters in string.gmatch(sub(told, 9, (stop or 0) - 1) .. ',', '([^,]*),') do
        local id = next_id()
        if wanted[id] then found[id] = letters end
      end
    end
  end
  return found
end
local new_ids, new_answers = {}, {}
-- The answers to these calls, in their order: the remembered ones, and for other calls the result of answer_to.
local function answered_calls(call_ids, are_resent, answer_to)
  local answers, answered = {}, are_resent and remembered_calls(call_ids) or {}
  for c, id in ipairs(call_ids) do
    answers[c] = answered[id]
    if not answers[c] then
      answers[c] = answer_to(c)
      answered[id] = answers[c]
      new_ids[#new_ids + 1], new_answers[#new_answers + 1] = id, answers[c]
    end
  end
  return answers
end
local function remember_calls()
  local first, count = new_ids[1], #new_ids
  if count == 0 then return end
  local ids = count > 1 and '\\0' .. table.concat(new_ids, '\\0') or ''
  call('HSET', CALLS, first, pack('>I6I2', now, count) .. table.concat(new_answers, ',') .. ids)
  call('RPUSH', CALL_ORDER, first)
  local kept = call('HINCRBY', META, 'calls', count)
  -- Removes calls beyond 10,000; if there are none, a few whose minute is over. Reads no entry more than it must: one
  -- may have hundreds of calls.
  local is_beyond = kept > ${callMemoryCount}
  for _ = 1, 50 do
    if is_beyond and kept <= ${callMemoryCount} then break end
    local oldest = call('LINDEX', CALL_ORDER, 0)
    if oldest == first then
      if kept ~= count then call('HSET', META, 'calls', count) end
      break
    end
    local told = call('HGET', CALLS, oldest)
    if is_whole(told) and kept <= ${callMemoryCount} and not is_over(told) then break end
    call('LPOP', CALL_ORDER)
    call('HDEL', CALLS, oldest)
    kept = call('HINCRBY', META, 'calls', is_whole(told) and -unpackn('>I2', told, 7) or -1)
  end
end
`
