/** The items of a settle call in Lua, read from ARGV (`settle-script.ts`). */
export const settleItems = `
local extras = { c = 0, k = 3, t = 5, r = 4, b = 3, x = 1 }
-- For each item its position in ARGV, its id, its fence in bytes and its kind.
local items, ids, item_fences, kinds = {}, {}, {}, {}
local fences = {}
local function fence_bytes(text)
  local bytes = fences[text]
  if not bytes then
    bytes = pack('>I7', tonumber(text))
    fences[text] = bytes
  end
  return bytes
end
local from = 1
while from <= #ARGV do
  local n = #ids
  if ARGV[from] == '' then
    local bytes, count = fence_bytes(ARGV[from + 1]), tonumber(ARGV[from + 2])
    for i = 1, count do
      items[n + i], ids[n + i], item_fences[n + i], kinds[n + i] = from, ARGV[from + 2 + i], bytes, 'c'
    end
    from = from + 3 + count
  else
    items[n + 1], ids[n + 1], item_fences[n + 1], kinds[n + 1] = from, ARGV[from], fence_bytes(ARGV[from + 1]), ARGV[from + 2]
    from = from + 3 + extras[ARGV[from + 2]]
  end
end
local function given(text)
  if text == '' then return nil end
  return sub(text, 2)
end
`
