/**
 * The order of bytes in Lua, whose `<` compares texts by the locale of the server. The translation of
 * `rules/byte-order`.
 */

export const byteOrder = `-- Whether one text comes before the other by its bytes.
local function comes_before(a, b)
  for i = 1, math.min(#a, #b) do
    local one, other = byte(a, i), byte(b, i)
    if one ~= other then return one < other end
  end
  return #a < #b
end
`
