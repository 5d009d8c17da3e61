/**
 * The claim loop in Lua. For each shard it recovers jobs whose lease has ended, promotes jobs that are due, and takes
 * jobs.
 */

import { upkeepLimit } from '../../rules/bounds.js'
import { leads } from '../lua/leads-lua.js'
import { fairShare, openSuspect } from './fair-share-lua.js'
import { gate, heads } from './throttle-gate-lua.js'

/** How a claim takes the jobs of one kind of queue: pieces of Lua inside the loop. */
export interface ClaimKind {
  /** Fields of a shard's meta to read after the eleven that the loop reads itself. */
  readonly fields: readonly string[]
  /** Functions that most claims do not need. */
  readonly rare: string
  /**
   * Defines `is_filled()`, whether the claim has enough bytes, and `grant(n, lease_ms)`, which puts the jobs taken from
   * the shard under one lease.
   */
  readonly take: string
  /** Runs first for each shard; the values of its fields are in `form`. */
  readonly begin: string
  /** Runs before the shard is recovered. */
  readonly before: string
  /** Runs after promotion. Ends expired jobs and defines `has_expired`: if more are left, the claim takes nothing. */
  readonly expire: string
  /** Whether the shard's jobs can be taken in their order, with no limit, lane or suspect to consider. */
  readonly isSimple: string
  /** Takes at most `asked_for` of these jobs and sets `count` to their number. */
  readonly takeSimple: string
  /** Defines what the fair share needs: `take_ready`, `take_lane` and `take_suspect`. */
  readonly takeOthers: string
  /** The number of ready jobs without a group. */
  readonly groupless: string
  /** The weight of all jobs that this call has granted so far, or 0 if it limits no later trip. */
  readonly weight: string
}

/** Fields of a shard's meta to read after the three that the gate reads. */
const fields = ['order', 'paused', 'maxCrashes', 'lead', 'leadAt', 'suspectLead', 'suspectLeadAt', 'sparesUntil']

export const claimLoop = (kind: ClaimKind, isGated: boolean) => `${leads}${gate(isGated, [...fields, ...kind.fields])}
local worker, alone, wants_heads, most_bytes, granted = ARGV[1], ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4]), tonumber(ARGV[6])
local grants, crashed, buried, expired, heads, tells = {}, {}, {}, {}, {}, {}
local queue, over, more = 1, false, false
${kind.take}
for n = 0, ASKED - 1 do
  local a = 8 + n * 5
  local own_queue, limit, lease_ms, max_payloads = tonumber(ARGV[a]), tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
  local weights_text = ARGV[a + 4]
  over = granted > 0 and (own_queue ~= queue or alone or limit <= granted or is_filled())
  if over then break end
  at(n)
  local form = gate.form()
  LIFO, STOPPED = form[4] == 'lifo', form[5] == '1'
  ${kind.begin}
  limits(form[2])
  over = granted > 0 and EXCLUSIVE
  if over then break end
  queue = own_queue
  local max_crashes, leader, lead_at, spares_until = tonumber(form[6]), form[7], tonumber(form[8]), tonumber(form[11])
  ${kind.before}

  -- Recover. Every lease that has ended is a crash, once a restarted server has given holders time to renew.
  local ended
  ended, spares_until = ended_leases(lease_ms, spares_until)
  for _, j in ipairs(ended) do crash(j, max_crashes, n, crashed, buried) end
  if #ended > 0 then tell_ends() end
  -- Promote.
  for _, member in ipairs(call('ZRANGE', SCHEDULED, '-', '(' .. pack('>I7', (now + 1) * 1000), 'BYLEX', 'LIMIT', 0, ${upkeepLimit})) do
    local j = job(sub(member, 14))
    if j then
      leave(j)
      enter(j, 'r')
    else
      call('ZREM', SCHEDULED, member)
      pass_over(sub(member, 14), sub(member, 8, 13))
    end
  end

  ${kind.expire}

  local is_open = not STOPPED and not is_full() and not (own.limited and lanes.opens_at() > now)
  local count, asked_for, lanes_left = 0, limit - granted, nil
  if asked_for > 0 and is_open and not has_expired then
    if ${kind.isSimple} then
      ${kind.takeSimple}
      lanes_left = 0
    else
      ${kind.takeOthers}${fairShare}
      count = take(asked_for, alone)
    end
    if count > 0 then grant(n, lease_ms) end
    granted = granted + count
    is_open = not is_full() and not (own.limited and lanes.opens_at() > now)
  elseif asked_for == 0 and is_open and not has_expired and call('EXISTS', SHUT) == 1 then lanes.open_due() end
  lanes_left = lanes_left or call('ZCARD', LANES)
  local ready, suspects, change = (own.groupless or ${kind.groupless}) + lanes_left, call('ZCARD', SUSPECTS), first_change(spares_until)
  -- A claim that leaves the shard closed reports suspects nonetheless. Their lead may itself hold the job that keeps it full.
  local reports = is_open or count > 0
  if asked_for == 0 and form[9] == worker and not STOPPED and is_full() then reports = not (own.limited and lanes.opens_at() > now) end
  -- Ms until a suspect may start, as far as its group decides that.
  local suspect_in = suspects > 0 and reports and 0 or math.huge
  if suspect_in == 0 and own.limited and (own.per or own.by_group or call('EXISTS', HOLDS) == 1) then
    ${openSuspect}
    local suspect, _, for_ms = open_suspect()
    if not suspect then
      suspect_in = for_ms
      if is_open and for_ms < math.huge then change = math.min(change or math.huge, now + for_ms) end
    end
  end
  local can = is_open and ready > 0
  if can and (own.limited or lanes_left > 0) then can = lanes.is_claimable() end
  -- The jobs that are left are shut: somebody must be told when they open.
  local is_shut = count > 0 and ready > 0 and not (EXCLUSIVE and not is_open) and not can
  -- No job is left, and the claimer has room for more: told that now, it need not ask again to hear it.
  local is_emptied = count > 0 and count < asked_for and not alone and ready == 0 and is_open

  -- The lead asks again when something changes by itself. A lead without room gives up: the worker that is rung leads.
  local has_left = (count > 0 or can) and not is_shut and not is_emptied and leader == worker and lead_at <= now
  if has_left then
    call('HDEL', META, 'lead', 'leadAt')
    lead_at = nil
  end
  if (count == 0 or is_shut or is_emptied) and not can and not (alone and is_open and suspect_in == 0) then
    local reason = STOPPED and 'paused' or (own.limited and lanes.reason_of(alone)) or (is_full() and 'full')
    reason = reason or (call('EXISTS', SCHEDULED) == 1 and 'scheduled' or 'empty')
    lead_at = lead_change(n, worker, reason, not STOPPED and change, leader, lead_at)
  end
  if reports and (suspects == 0 or suspect_in == 0) then lead_suspects(n, worker, suspects, alone or asked_for == 0, form[9], tonumber(form[10])) end

  -- One waiter was woken for this claim. A claim that leaves jobs wakes the next waiter, and one that leaves none takes
  -- the ring back.
  if can or has_left then ring_unpaused()
  elseif count > 0 then
    local first = call('ZRANGE', SCHEDULED, 0, 0)[1]
    if not first or (is_led(lead_at) and lead_at <= math.floor(unpackn('>I7', first) / 1000)) then call('DEL', WAKE) end
  else call('DEL', WAKE) end
  more = more or (not STOPPED and (can or (change and change <= now)))
  if REPORTS and joins().flush() then tells[#tells + 1] = n end
end
${heads}if tells[1] then return { now, grants, over and 1 or 0, waits, crashed, buried, heads, more and 1 or 0, ${kind.weight}, expired, tells } end
return { now, grants, over and 1 or 0, waits, crashed, buried, heads, more and 1 or 0, ${kind.weight}, expired }
`
