/** The note with a job's beats, in Lua: how to read it, and what the end of a run adds to it. */

export const beatNotes = String.raw`
-- Splits the note of a job's beats: start, host, pid, progress, instant of the last beat, boot, pidns and ticks; '' for
-- an absent part. A note of an earlier release lacks the last three.
local function read_beat(text)
  return { string.match(text, '^(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)') }
end
-- The instant this many ms ago.
local function started_at(ms) return string.format('%.0f', now - tonumber(ms)) end
-- Adds to the note when and where the job ran, as far as no beat has reported it.
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
