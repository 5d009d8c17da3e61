/** The claim loop in Lua: shard by shard, what has ended is recovered, what is due is promoted, and jobs are taken. */

import { upkeepLimit } from '../../rules/bounds.js'
import { leads } from '../lua/leads-lua.js'
import { fairShare } from './fair-share-lua.js'
import { gate, heads } from './throttle-gate-lua.js'

/** How a claim takes the jobs of one kind of queue: pieces of Lua inside the loop. */
export interface ClaimKind {
  /** Of the meta of a shard, behind the eleven fields that the loop reads. */
  readonly fields: readonly string[]
  /** Functions that most claims do not need. */
  readonly rare: string
  /**
   * Defines `is_filled()`, whether the claim has enough bytes, and `grant(n, lease_ms)`, which puts what was taken of the
   * shard under one lease.
   */
  readonly take: string
  /** At the beginning of a shard, whose fields are `form`. */
  readonly begin: string
  /** Before the shard is recovered. */
  readonly before: string
  /** Once the shard has promoted: ends jobs that expired, and defines whether there are more, `has_expired`: then nothing is taken. */
  readonly expire: string
  /** Whether its jobs can be taken in their order, with nothing else to heed. */
  readonly isSimple: string
  /** Takes them, at most `asked_for`: `count` is how many. */
  readonly takeSimple: string
  /** Defines what the fair share needs: `take_ready`, `take_lane` and `take_suspect`. */
  readonly takeOthers: string
  /** How many ready jobs have no group. */
  readonly groupless: string
  /** What this call has granted by now weighs, where that counts for others. */
  readonly weight: string
}

/** Of the meta of a shard, behind the three that the gate reads. */
const fields = ['order', 'paused', 'maxCrashes', 'lead', 'leadAt', 'suspectLead', 'suspectLeadAt', 'sparesUntil']

export const claimLoop = (kind: ClaimKind, isGated: boolean) => `${leads}${gate(isGated, [...fields, ...kind.fields])}
local worker, alone, wants_heads, most_bytes, granted = ARGV[1], ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4]), tonumber(ARGV[6])
local grants, crashed, buried, expired, heads = {}, {}, {}, {}, {}
local queue, over, more = 1, false, false
${kind.take}
for n = 0, ASKED - 1 do
  local a = 8 + n * 4
  local own_queue, limit, lease_ms, max_payloads = tonumber(ARGV[a]), tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
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

  -- Recover: every lease that has ended is a crash, once those who hold leases have had time to say that they live.
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
  local can = is_open and ready > 0
  if can and (own.limited or lanes_left > 0) then can = lanes.is_claimable() end
  -- What is left is shut: somebody must be told when it opens.
  local is_shut = count > 0 and ready > 0 and not (EXCLUSIVE and not is_open) and not can

  -- The lead asks again when something changes by itself. A lead that has no room hands that on: the worker that is rung leads.
  local has_left = (count > 0 or can) and not is_shut and leader == worker and lead_at <= now
  if has_left then
    call('HDEL', META, 'lead', 'leadAt')
    lead_at = nil
  end
  if (count == 0 or is_shut) and not can and not (alone and suspects > 0 and is_open) then
    local reason = STOPPED and 'paused' or (own.limited and lanes.reason_of(alone)) or (is_full() and 'full')
    reason = reason or (call('EXISTS', SCHEDULED) == 1 and 'scheduled' or 'empty')
    lead_at = lead_change(n, worker, reason, not STOPPED and change, leader, lead_at)
  end
  if is_open then lead_suspects(n, worker, suspects, alone or asked_for == 0, form[9], tonumber(form[10])) end

  -- One waiter was woken. A claim that leaves jobs wakes the next; a claim that leaves none takes back the ring.
  if can or has_left then ring_unpaused()
  elseif count > 0 then
    local first = call('ZRANGE', SCHEDULED, 0, 0)[1]
    if not first or (is_led(lead_at) and lead_at <= math.floor(unpackn('>I7', first) / 1000)) then call('DEL', WAKE) end
  else call('DEL', WAKE) end
  more = more or (not STOPPED and (can or (change and change <= now)))
end
${heads}return { now, grants, over and 1 or 0, waits, crashed, buried, heads, more and 1 or 0, ${kind.weight}, expired }
`
