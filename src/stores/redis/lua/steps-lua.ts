/**
 * The steps, sleeps and signals of plain jobs in Lua: what a job keeps while it lasts, and its wait for a signal.
 *
 * Fields of `steps`, each with the id of its job first. The id alone: `TOTALS` · id, NUL, `#` and a number → where the
 * entry with this number is: `n` (a step or sleep) or `g` (a signal, or a wait in vain) and its name · id, NUL and these →
 * the entry: `p` step, `z` sleep, `s` signal or `t` wait in vain; `ENTRY`; its value in the stored form, '' for none ·
 * id, NUL, `w`, of a job that waits for a signal → until when (6 bytes, 0 if there is no bound), name of the signal.
 * The past of a job has a capital letter if it has entries: others pay nothing for this.
 */

import { mostSignalBytes, mostSignals } from '../../rules/bounds.js'
import { asFunction } from './lazy-functions-lua.js'

/** How an entry is written. A script that keeps a step needs no other function of this file, but for the first of a job. */
export const newEntry = `
-- The last number given, entries, signals among them, bytes of their data.
local TOTALS = '>I4I4I2I4'
-- Number, instant, end of a sleep or 0.
local ENTRY = '>I4I6I6'
local function totals_in(packed)
  if not packed then return 0, 0, 0, 0 end
  return unpackn(TOTALS, packed)
end
local function index(id, number) return id .. '\\0#' .. string.format('%d', number) end
-- The instant ms from now, or the last that six bytes hold.
local function after(ms) return math.min(now + tonumber(ms), 2 ^ 48 - 1) end
local function data_bytes(value) return value == '' and 0 or #value - find(value, '\\0', 1, true) end
-- Writes an entry of a marked job, which has none of this name. packed: the totals of the job, or false. sleep_ms: of a sleep.
local function write_entry(id, packed, kind, name, value, sleep_ms)
  local last, count, signals, bytes = totals_in(packed)
  local at = (kind == 's' or kind == 't') and 'g' or 'n'
  if kind == 's' then signals, bytes = signals + 1, bytes + data_bytes(value) end
  local entry = kind .. pack(ENTRY, last + 1, now, sleep_ms and after(sleep_ms) or 0) .. value
  call('HSET', STEPS, id, pack(TOTALS, last + 1, count + 1, signals, bytes), index(id, last + 1), at .. name, id .. '\\0' .. at .. name, entry)
end
`

const text = `${newEntry}
local M = {}
local function totals(id) return totals_in(call('HGET', STEPS, id)) end
-- The end of a claim looks for entries only if the past of the job says that there are some.
function M.mark(j, has_entries)
  if j.steps == has_entries then return end
  j.steps = has_entries
  if j.claim and not has(j.claim.flags, HASHISTORY) then
    call('HSET', CLAIMS, j.id, with_flags(j.claim.text, j.claim.flags + HASHISTORY))
  elseif not j.claim and j.state == 'l' then
    -- Jobs in the ready list have no past.
    local updated = j.updated
    leave(j)
    enter(j, 'r')
    j.updated = updated
  end
  j.fresh = false
  call('HSET', HISTORY, j.id, write_past(j))
end
-- The letter of the entry for the signal of this name, or nil.
function M.kind(id, name)
  local entry = call('HGET', STEPS, id .. '\\0g' .. name)
  return entry and sub(entry, 1, 1) or nil
end
-- Adds an entry for a signal; there is none of its name.
function M.add(j, kind, name, value)
  M.mark(j, true)
  write_entry(j.id, call('HGET', STEPS, j.id), kind, name, value)
end
-- Removes the entry at this place. Returns whether there was one.
function M.remove(j, place)
  local field = j.id .. '\\0' .. place
  local entry = call('HGET', STEPS, field)
  if not entry then return false end
  local last, count, signals, bytes = totals(j.id)
  if sub(entry, 1, 1) == 's' then signals, bytes = signals - 1, bytes - data_bytes(sub(entry, 18)) end
  call('HDEL', STEPS, field, index(j.id, unpackn('>I4', entry, 2)))
  if count > 1 then call('HSET', STEPS, j.id, pack(TOTALS, last, count - 1, signals, bytes))
  else
    call('HDEL', STEPS, j.id)
    M.mark(j, false)
  end
  return true
end
-- Calls a function with the places of the entries, some at a time, in the order in which they were stored.
function M.each(id, visit)
  local last = totals(id)
  for first = 1, last, 500 do
    local fields, places = {}, {}
    for number = first, math.min(last, first + 499) do fields[#fields + 1] = index(id, number) end
    for _, place in ipairs(call('HMGET', STEPS, unpack(fields))) do
      if place then places[#places + 1] = place end
    end
    visit(places, fields)
  end
end
-- Sleeps that are not over end now.
function M.end_sleeps(j)
  M.each(j.id, function(places)
    for _, place in ipairs(places) do
      local field = j.id .. '\\0' .. place
      local entry = call('HGET', STEPS, field)
      if sub(entry, 1, 1) == 'z' and unpackn('>I6', entry, 12) > now then
        call('HSET', STEPS, field, sub(entry, 1, 11) .. pack('>I6', now) .. sub(entry, 18))
      end
    end
  end)
end
-- Removes all entries of a job. The caller writes its past, or removes it.
function M.drop(j)
  M.each(j.id, function(places, fields)
    for _, place in ipairs(places) do fields[#fields + 1] = j.id .. '\\0' .. place end
    many('HDEL', STEPS, fields)
  end)
  call('HDEL', STEPS, j.id)
  j.steps = false
end
-- Whether one more signal with this data has room.
function M.has_room(id, value)
  local _, _, signals, bytes = totals(id)
  return signals < ${mostSignals} and bytes + data_bytes(value) <= ${mostSignalBytes}
end
local function move_retry(j, before)
  call('ZREM', RETRIES, before)
  call('ZADD', RETRIES, 0, retry_place(j))
end
-- Ends the claim of a job: it waits for a signal, for ms at the most, or without end if that is ''. If it has that
-- already, or its time was over before, it is ready.
function M.wait(j, signal, ms)
  stay(j)
  leave(j)
  if call('HEXISTS', STEPS, j.id .. '\\0g' .. signal) == 1 then
    end_wait(j)
    return enter(j, 'r')
  end
  local until_at, retry = ms == '' and 0 or after(ms), retry_place(j)
  call('HSET', STEPS, j.id .. '\\0w', pack('>I6', until_at) .. signal)
  if until_at > 0 then call('ZADD', SIGNAL_WAITS, string.format('%.0f', until_at), j.seq .. j.id) end
  enter(j, 'a')
  if j.attempt > 1 then move_retry(j, retry) end
end
-- The signal that a job waits for; nil if it waits for none.
function M.awaited(j)
  local wait = not j.claim and j.state == 'a' and call('HGET', STEPS, j.id .. '\\0w')
  return wait and sub(wait, 7) or nil
end
-- The wait is over: the job is ready in its place.
function M.wake(j)
  local retry = retry_place(j)
  leave(j)
  end_wait(j)
  enter(j, 'r')
  if j.attempt > 1 then move_retry(j, retry) end
  if is_calling(j) then ring_unpaused() end
end
`

/** A lazy function whose first call makes the others: few jobs have entries. */
export const stepFunctions = asFunction('entries', 'late.entries', text)
