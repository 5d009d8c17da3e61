/** The mutations of the Redis store's throttles, bounds, lanes and holds. */

import { mutationsIn } from './mutants.js'

export const redisLimitedMutations = mutationsIn(`
@ redis/lua/lanes-lua.js
* a queue that is held opens with its throttle
- return math.max(limits().held, limits().shut)
+ return limits().shut > now and limits().shut or limits().held
* maxRunning bounds each shard
- if SIBLINGS < 1 then return most
+ if SIBLINGS >= 0 then return most
* of jobs without a group as many may run as of all
-   for i = 2, #busy, 2 do most = most + busy[i] end
* a lane that opens stays among the shut ones
-   call('ZREM', SHUT, group)
-   call('ZADD', TURNS
+   call('ZADD', TURNS
* a lane that is shut keeps its turn
-   call('ZREM', TURNS, group)
-   call('ZADD', SHUT
+   call('ZADD', SHUT
* a lane whose group is full no longer stays shut
- if not is_open then lanes.leave_turn(group)
+ if #first_of(group, 1) == 0 then lanes.leave_turn(group)
* a short hold of a queue ends a longer one
- if until_at > limits().held then
+ if until_at > now then
* a short hold of a group ends a longer one
- call('ZADD', HOLDS, 'GT', until_at, group)
+ call('ZADD', HOLDS, until_at, group)
* a lane that is shut opens with its hold
- lanes.close(group, math.max(until_at, tonumber(call('ZSCORE', SHUT, group) or 0)))
+ lanes.close(group, until_at)
* jobs without a group are claimable though they are shut
- has_groupless and not call('ZSCORE', SHUT, '') and
+ has_groupless and
* a shut queue with open lanes opens at once
-   if lanes.opens_at() > now then return lanes.opens_at() end
* suspects alone are no reason to ask when a shut queue opens
- if call('EXISTS', LANES, SUSPECTS) == 0
+ if call('EXISTS', LANES) == 0
* groups that are full are told as throttled
- return next_lane() and 'throttled' or 'full'
+ return 'throttled'
* the end of a claim under maxRunning rings nobody
- if not EXCLUSIVE and not max and not per then return false end
+ if not EXCLUSIVE and not per then return false end
! bounds on what runs
* a job for a shut group that is led rings
-     opens = math.max(opens, tonumber(call('ZSCORE', SHUT, j.group) or 0))
! waiting for throttles
* a lane opens a ms late
- call('ZRANGE', SHUT, '-inf', now,
+ call('ZRANGE', SHUT, '-inf', '(' .. now,
* a paused group has room
- then return 0 end
-   if not most
+ then most = nil end
+   if not most
* a hold that is released leaves its lane shut
- if call('ZSCORE', SHUT, group) then lanes.open(group) end
* a release of all holds ends pauses too
- call('ZREMRANGEBYSCORE', HOLDS, '-inf', '(+inf')
+ call('ZREMRANGEBYSCORE', HOLDS, '-inf', '+inf')
* a shut lane opens for a new job
- return call('ZSCORE', TURNS, group) or call('ZSCORE', SHUT, group)
+ return call('ZSCORE', TURNS, group)
* rules for each group beside those for all do not count
- values[6] and values[6] ~= 'queue'
+ values[6] == 'group'
* rules for all beside those for each group do not count
- values[6] and values[6] ~= 'group'
+ values[6] == 'queue'
@ redis/claim/fair-share-lua.js
* a throttle is charged with what a claim may take
- denied(nil, taken)
+ denied(nil, math.max(0, most))
* a lane that was shut is opened behind that
-     started_in(group, taken)
-     return taken
+     started_in(group, taken)
+     if has_left and free > taken then lanes.open(group) end
+     return taken
* a group has one turn more than its weight
- turn % \${turnStep} + 1 <
+ turn % \${turnStep} <
* the turns that a group has had count in its round once more
- math.max(0, weight - 1 - turn % \${turnStep})
+ weight - 1
* a lane whose group has become full keeps its turn
- if has_left and free > taken then
+ if has_left then
* a hold of a group lasts a ms longer
- if held > now then
+ if held >= now then
* shares of lanes are rounded down
- math.ceil((most - taken) / unvisited)
+ math.floor((most - taken) / unvisited)
* a hold of a group does not keep a suspect back
- local held_ms = math.max(0, lanes.held_until(group) - now)
+ local held_ms = 0
* a suspect costs its group no permit
-       started_in(group, 1)
* a suspect that fills its group leaves that its turn
-       if group ~= '' then lanes.refresh(group) end
* a claim that finds nothing lets the counter go on
-     if own.by_queue then gate.rests() end
* a suspect that a throttle has denied is not shut
- if for_ms and (lanes.groupless() > 0 or call('EXISTS', LANES, SUSPECTS) > 0) then
+ if for_ms and (lanes.groupless() > 0 or call('EXISTS', LANES) > 0) then
@ redis/claim/claim-loop-lua.js
* a claim that takes nothing opens no lane
- elseif asked_for == 0 and is_open
+ elseif asked_for < 0 and is_open
* a claim that takes the last jobs tells nothing
- local is_emptied = count > 0 and count < asked_for
+ local is_emptied = false and count < asked_for
* nobody is told when what a claim left behind opens
- local is_shut = count > 0 and ready > 0 and not (EXCLUSIVE and not is_open) and not can
+ local is_shut = false
@ redis/claim/throttle-gate-lua.js
* a counter goes by the jobs of one shard of its scope
- for p = peers_from + 1, peers_from + peers * 4, 4 do
+ for p = peers_from + 1, peers_from + 4, 4 do
* a counter goes by the jobs of paused queues too
- if form[3] and form[1] ~= '1' and not form[2] then
+ if form[3] and not form[2] then
! the rest of a throttle
* a counter does not go by the jobs of groups
-       if not group and call('EXISTS', lanes) == 1 then return true end
@ redis/enqueue/enqueue-script.js
* a lane loses its turn if its only job is replaced, though another has come in the same trip
- if added[id] or #opened > 0 then write() end
+ if added[id] then write() end
@ redis/lua/throttle-lua.js
* the grids go on under other rules
- if version ~= S.version then
+ if version == 0 then
* the wait is that for the newest rule
- math.max(most_ms, for_ms)
+ for_ms
* credit is kept at rest
- t.slots[i], t.credits[i] = slot_at_rest(rule, t.last), 0 end
+ t.slots[i] = slot_at_rest(rule, t.last) end
* who is denied in a silence is told of that alone
- return 0, math.max(quiet, for_ms) + at - now
+ return 0, quiet + at - now
* a start is not written down as the last of the scope
-   if S.last_at ~= at then call('HSET', RULES, 'lastAt', at) end
* groups that are idle are counted
- call('ZCOUNT', IDLE, idle_edge(), '+inf')
+ call('ZCARD', IDLE)
* a subject is forgotten a ms early
- idle_edge() - 1
+ idle_edge()
* what a recovery charges to a group leaves it as idle as it was
- (charge > 0 and S.recovered_at or last) < S.at - rules.longest
+ last < S.at - rules.longest
* a silence ends a ms early
- now + silent + 1
+ now + silent
* windows of all lengths are silent
- if not rule.is_long then
+ if rule.window then
* a long window is not charged for a part of a start
- math.ceil(rule.limit * gap / rule.window)
+ math.floor(rule.limit * gap / rule.window)
* a limit of 1 keeps a grid
- moderate == 'm' and rule.limit > 1
+ moderate == 'm'
* a slot comes a µs late
- if room > 0 and left <= 0 then
+ if room > 0 and left < 0 then
* the wait for a slot is rounded down
- local evenly = math.ceil(left / 1000)
+ local evenly = math.floor(left / 1000)
* a window that is full does not hold an even counter back
-   if opens_at then evenly = math.max(evenly, opens_at - at) end
* the buffer is given away when it is all that is unused
- may_catch_up and room > rule.buffer then
+ may_catch_up and room >= rule.buffer then
* a counter catches up one start early
- rule.buffer and credit >= rule.limit
+ rule.buffer and credit >= rule.limit - 1
* credit grows without end
- credit = math.min(rule.limit, credit + count)
+ credit = credit + count
* a start that comes late takes the next place on the grid
- math.floor((now_us - due) / rule.spacing)
+ math.ceil((now_us - due) / rule.spacing)
* the grid does not begin anew where the window held it back
-   if opens_at then due = math.max(due, opens_at * 1000) end
* a counter at rest has no place on the grid
- return rule.is_even and last * 1000 or nil
+ return nil
* a group with a rate of its own goes by the rules of all
- local rules = own_of(subject) or (subject ~= '' and S.each) or S.rules
+ local rules = (subject ~= '' and S.each) or S.rules
* the grids of a group go on under other rules of its own
- pack('>I4', 0) .. string.sub(counter, 19)
+ string.sub(counter, 15)
* a rate that is replaced counts as one more
- (has and 1 or 0) - (had and 1 or 0)
+ (has and 1 or 0) - (had and not has and 1 or 0)
* a group is forgotten when the windows of all groups are over, though its own goes on
- S.own and tonumber(string.match(S.own, '^%d+ (%d+)')) or 0
+ 0
! rates of groups
* a group that is silent for longer than the others is not
- if not silent then return S.quiet_until end
+ if true then return S.quiet_until end
! rates of groups
* a long window of one group is not charged
- and charge_after(rules, last)
+ and charge_after(S.rules, last)
! rates of groups
* the windows of a group are counted by the rules of all
- for i, rule in ipairs(t.rules) do hits[i] = hits_of(rule, t) end
+ for i, rule in ipairs(S.rules) do hits[i] = hits_of(rule, t) end
* a group goes by the rules for all
- (subject ~= '' and S.each) or S.rules
+ S.rules
* the count of all is one of a group
-  and tonumber(all) >= idle_edge() and 1 or 0)
+  and 0 or 0)
* the silence for each group is not longer than that for all
- if of_each then silent
+ if false then silent
@ redis/lua/starts-lua.js
* what a recovery charges is older than what has started
- t.newest[1] = { at = S.recovered_at
+ t.oldest[1] = { at = S.recovered_at
* a short window no longer sees a start that is as old as it
- if e.at >= edge then hits
+ if e.at > edge then hits
* the longest window no longer sees a start that is as old as it
- while e and e.at < edge do
+ while e and e.at <= edge do
! throttling
* a short window opens a ms early
- local opens_at = e.at + rule.window + 1
+ local opens_at = e.at + rule.window
* the longest window opens a ms early
- return hits, e.at + rule.window + 1
+ return hits, e.at + rule.window
* starts that no window sees any more go on counting
-     t.n = t.n - t.gone
* an instant has an entry for each claim
-   if count > 0 and t.last == start_at then
+   if count > 0 and t.last > start_at then
* starts that may be late count from their grant
- math.max(S.at + late_ms, t.last or 0)
+ math.max(S.at, t.last or 0)
! waiting for throttles
* a start counts from before the one that came before it
- math.max(S.at + late_ms, t.last or 0)
+ S.at + late_ms
! waiting for throttles
@ redis/shards/redis-scopes.js
* of a throttle only its silence is told as a wait
- math.max(for_ms, throttle_wait(''))
+ for_ms
@ redis/claim/settle-script.js
* a job without a group that holds its group holds only those without one
- ARGV[hold + 3] == 'group' and j.group ~= '' and j.group or nil
+ ARGV[hold + 3] == 'group' and j.group or nil
* a completion holds nothing
- local leaves = not hold and flags < HASGROUP
+ local leaves = flags < HASGROUP
@ redis/claim/claim-plain-lua.js
* a group is full without its suspect
-   if group ~= '' then call('HINCRBY', RUNNING_BY_GROUP, group, 1) end
@ redis/claim/redis-claim.js
* claims forget how late their jobs may be
- limits: limitedBy(queue), limit, lateMs }
+ limits: limitedBy(queue), limit, lateMs: 0 }
! waiting for throttles
@ redis/shards/queue-state-script.js
* the rate of a group that is set leaves its lane shut
- if ARGV[2] then lanes.look(ARGV[2])
+ if ARGV[2] then
* the rate of a group opens all lanes
- if ARGV[2] then lanes.look(ARGV[2])
+ if ARGV[2] == 'none' then
`)
