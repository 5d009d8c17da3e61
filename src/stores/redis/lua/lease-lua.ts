/** The renewal of a lease in Lua, for scripts that hear from a run: with its beats, or with a step. */

export const renewal = String.raw`
-- Renews the lease of a claim, and never shortens it. Returns the flags that the claim has now, which the caller writes.
local function renew(id, claim, ends_at)
  local flags = byte(claim, 14) - 64
  if has(flags, OWNLEASE) then call('ZADD', LEASES, 'GT', ends_at, id)
  -- A half-executed script may have left the claim without its shared lease.
  elseif ends_at > tonumber(call('ZSCORE', LEASES, '\0' .. sub(claim, 1, 7)) or 0) then
    leave_lease(sub(claim, 1, 7), 1)
    call('ZADD', LEASES, ends_at, id)
    flags = flags + OWNLEASE
  end
  return flags
end
`
