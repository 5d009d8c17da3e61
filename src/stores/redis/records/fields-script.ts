/** The fields script: sets small named values of a job, in any state. */

import { mostFieldBytes, mostFields } from '../../../core/job-fields.js'
import { guard, scriptPair } from '../lua/script-kinds.js'

/**
 * KEYS: those of one shard. ARGV: id; for each field its name, and its value as JSON, or '' to remove it.
 * Returns o ok, g gone, f full. Refuses `unknown`.
 *
 * The note `f` has for each field its name, `=`, its value as JSON, and NUL. The translation of `rules/field-changes`.
 */
const text = String.raw`
local id = ARGV[1]
local j = job(id)
if not j or is_hidden(j) then return 'g' end
local names, values = {}, {}
local function put(name, value)
  if not values[name] then names[#names + 1] = name end
  values[name] = value
end
for name, value in string.gmatch(call('HGET', NOTES, 'f' .. id) or '', '([^=]+)=(%Z*)%z') do put(name, value) end
for i = 2, #ARGV, 2 do put(ARGV[i], ARGV[i + 1]) end
local fields, bytes = {}, 0
for _, name in ipairs(names) do
  if values[name] ~= '' then
    fields[#fields + 1] = name .. '=' .. values[name] .. '\0'
    bytes = bytes + #name + #values[name]
  end
end
if #fields > ${mostFields} or bytes > ${mostFieldBytes} then return 'f' end
if #fields == 0 then
  call('HDEL', NOTES, 'f' .. id)
  return 'o'
end
-- The end of a job looks for notes only if a flag or a past says that there may be some.
if j.claim then
  if not has(j.claim.flags, BEATEN) then call('HSET', CLAIMS, id, with_flags(j.claim.text, j.claim.flags + BEATEN)) end
elseif j.fresh then
  local updated = j.updated
  -- Jobs in the ready list have no notes.
  if j.state == 'l' then
    leave(j)
    enter(j, 'r')
    j.updated = updated
  end
  call('HSET', HISTORY, id, write_past(j))
end
call('HSET', NOTES, 'f' .. id, table.concat(fields))
return 'o'
`

export const fieldsScripts = scriptPair('fields', guard + text)
