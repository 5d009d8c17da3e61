/** The items of a settle call in Lua, as they stand in ARGV (`settle-script.ts`). */
export const settleItems = `
local extras = { c = 0, k = 3, t = 5, r = 4, b = 3, x = 1 }
local items, ids = {}, {}
local from = 1
while from <= #ARGV do
  items[#items + 1] = from
  ids[#ids + 1] = ARGV[from]
  from = from + 3 + extras[ARGV[from + 2]]
end
local fences = {}
local function fence_bytes(text)
  local bytes = fences[text]
  if not bytes then
    bytes = pack('>I7', tonumber(text))
    fences[text] = bytes
  end
  return bytes
end
local function given(text)
  if text == '' then return nil end
  return sub(text, 2)
end
`
