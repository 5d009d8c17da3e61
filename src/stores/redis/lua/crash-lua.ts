/** A crash: what becomes of a running job whose lease ended unsettled. The translation of `afterCrash`. */
export const crashes = `
-- Ends the claim and writes it down: in crashed as index, id, task, worker, charged, crashes; in buried as index, id, task, reason.
local function crash(j, max_crashes, index, crashed, buried)
  local alone = has(j.claim.flags, ALONE)
  if alone then j.crashes = j.crashes + 1 end
  for _, part in ipairs({ index, j.id, j.task, j.claim.worker, alone and 1 or 0, j.crashes }) do crashed[#crashed + 1] = part end
  call('HINCRBY', META, 'crashed', 1)
  if has(j.claim.flags, CANCEL) then finish(j, 'x')
  elseif alone and j.crashes >= max_crashes then
    for _, part in ipairs({ index, j.id, j.task, 'crashed' }) do buried[#buried + 1] = part end
    exhaust(j, 'crashed')
  else put_back(j, true) end
end
`
