/** The items of a settle call in Lua, read from ARGV (`settle-script.ts`). */
export const settleItems = `
local extras = { c = 0, k = 3, t = 6, r = 3, b = 4, x = 2, h = 2 }
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
local function read_items()
  local from = 1
  while from <= #ARGV do
    local n = #kinds
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
end
-- Most calls are one run of completions under one fence. They need only the ids.
local is_run = ARGV[1] == '' and #ARGV == 3 + ARGV[3]
if is_run then ids = { unpack(ARGV, 4) } else read_items() end
local function given(text)
  if text == '' then return nil end
  return sub(text, 2)
end
`
