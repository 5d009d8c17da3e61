/** The memory of enqueue calls: one that is sent again is answered as before. At most 1,000, each for a minute. */

import { callMemoryCount, callMemoryMs } from '../../rules/bounds.js'

export const remembering = `
local new_calls, new_callers = {}, {}
-- The answers to these calls, in their order: of those that are remembered, and of the others what answer_to says.
local function answered_calls(call_ids, remembered, answer_to)
  local answers, answered, now_bytes = {}, {}, pack('>I6', now)
  for c, id in ipairs(call_ids) do
    local before = answered[id] or remembered[c]
    if before and unpackn('>I6', before) + ${callMemoryMs} > now then answers[c] = sub(before, 7) else
      answers[c] = answer_to(c)
      local told = now_bytes .. answers[c]
      answered[id] = told
      new_calls[#new_calls + 1] = id
      new_calls[#new_calls + 1] = told
      new_callers[#new_callers + 1] = id
    end
  end
  return answers
end
local function remember_calls()
  if #new_calls == 0 then return end
  many('HSET', CALLS, new_calls)
  many('RPUSH', CALL_ORDER, new_callers)
  -- Those that are too many go, or of those whose minute is over a few.
  local excess = call('LLEN', CALL_ORDER) - ${callMemoryCount}
  if excess > 0 then many('HDEL', CALLS, call('LPOP', CALL_ORDER, excess)) else
    for _ = 1, 50 do
      local oldest = call('LINDEX', CALL_ORDER, 0)
      local told = call('HGET', CALLS, oldest)
      if told and unpackn('>I6', told) + ${callMemoryMs} > now then break end
      call('LPOP', CALL_ORDER)
      call('HDEL', CALLS, oldest)
    end
  end
end
`
