/** The note in which a job's beats are kept, in Lua: how it is read, and what the end of a run adds to it. */

export const beatNotes = String.raw`
-- Started, host, pid, progress, the instant of the last beat, boot, pidns and ticks; '' for none. In a note of an earlier
-- release the last three are not there.
local function read_beat(text)
  return { string.match(text, '^(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)') }
end
-- The instant at which what lasts so many ms began.
local function started_at(ms) return string.format('%.0f', now - tonumber(ms)) end
-- When and where the job ran, as far as no beat has said it.
local function know_run(j, run)
  if run == '' then return end
  local said = read_beat(run)
  said[1] = started_at(said[1])
  local before = read_beat(has(j.claim.flags, BEATEN) and call('HGET', NOTES, 'b' .. j.id) or '')
  for i = 1, 8 do
    if before[i] ~= '' then said[i] = before[i] end
  end
  call('HSET', NOTES, 'b' .. j.id, table.concat(said, '\0'))
end
`
