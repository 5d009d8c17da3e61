/** A crash in Lua: it ends the claim of a running job whose lease has ended. The translation of `afterCrash`. */
export const crashes = `
-- Ends the claim and reports it: adds index, id, task, worker, charged, crashes to crashed; for a job that is buried
-- also index, id, task, reason, fence and, in an ordered queue, its buried payload, otherwise '', to buried.
-- error: how the worker died; nil if that is not known.
local function crash(j, max_crashes, index, crashed, buried, error)
  local alone = has(j.claim.flags, ALONE)
  if alone then j.crashes = j.crashes + 1 end
  for _, part in ipairs({ index, j.id, j.task, j.claim.worker, alone and 1 or 0, j.crashes }) do crashed[#crashed + 1] = part end
  call('HINCRBY', META, 'crashed', 1)
  if error then call('HSET', NOTES, 'e' .. j.id, error) end
  if has(j.claim.flags, CANCEL) then finish(j, 'x')
  elseif alone and j.crashes >= max_crashes then
    local fence = j.claim.fence
    for _, part in ipairs({ index, j.id, j.task, 'crashed', fence, exhaust(j, 'crashed') or '' }) do buried[#buried + 1] = part end
  else put_back(j, true) end
end
`
