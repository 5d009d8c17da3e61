/** The mutations of the Redis store's Lua. */

import { mutationsIn } from './mutants.js'

export const redisMutations = mutationsIn(String.raw`
@ redis/enqueue/enqueue-script.js
* no id that comes in the short form is looked up
- local are_new = sub(ARGV[1], -1) == 'n'
+ local are_new = sub(ARGV[1], -1) ~= 'r'
* an ended id is remembered a millisecond longer
- unpackn('>I6', ended[n], 33) > now
+ unpackn('>I6', ended[n], 33) >= now
* a job for later rings also where somebody leads
- rings or not (is_led(lead_at) and lead_at <= due)
+ true
! ringing
* an enqueue rings nobody
- if rings and not paused then ring() end
! waiting
* of jobs that are added at once one may be there already
- if records[n] or ended[n] or added[id] then
+ if ended[n] or added[id] then
* of jobs that are added at once one may have ended a moment ago
- if records[n] or ended[n] or added[id] then
+ if records[n] or added[id] then
* of jobs that are added at once two may have the same id
- if records[n] or ended[n] or added[id] then
+ if records[n] or ended[n] then
! enqueueing
* jobs that are added at once may be more than there is room for
-  or count > room() then return nil end
+  then return nil end
* jobs that are added at once are taken by a queue that drains
- if LIFO or draining or first
+ if LIFO or first
! records: actions
* jobs that are added at once stand in the ready list of a queue that takes the last one first
- if LIFO or draining or first
+ if draining or first
* jobs that are added at once stand before those that were ready already
- first <= tail or first + count
+ first + count
! order when the clock is set
* a job that takes the place of another has no past that says when it changed
-   many('HSET', HISTORY, pasts)
* a running job is replaced
- if j.claim then return 'p' end
* what has come in by the same trip is not written before it is replaced
- if added[id] or #opened > 0 then write() end
* the soonest expiry is taken for the last one that came in
- expiring_at = math.min(expiring_at, expires_at)
+ expiring_at = expires_at
@ redis/claim/settle-script.js
* a settle does not look at the fence
- if not claim or sub(claim, 1, 7) ~= bytes then
+ if not claim then
* a settle says that all were taken where one was not
- 'l' or 'g'
-       all_ok = false
+ 'l' or 'g'
* of a run that is settled at once one claim may be of another fence
- sub(claim, 1, 7) ~= bytes or byte
+ byte
! settling
* of a run that is settled at once one job may leave a trace
-  or byte(claim, 14) - 64 >= HASHISTORY
! settling
* of a run that is settled at once two items may be the same
-  or seen[id]
! settling
* startedAt is when the store hears of it
- now - tonumber(ms)
+ now
* the end of a run is told over what its beats said
- if before[i] ~= '' then said[i] = before[i] end
+ if said[i] == '' then said[i] = before[i] end
* a burial tells of no run
-     know_run(j, c)
-     bury(
+     bury(
* of results that are kept together none says where it came from
- if run ~= '' then
-       local ms
+ if false then
+       local ms
! retention
* a checkpoint stays where its job is completed with a kept result
- call('HDEL', NOTES, 'e' .. j.id, 'k' .. j.id)
+ call('HDEL', NOTES, 'e' .. j.id)
! checkpoints and logs
@ redis/claim/retention-lua.js
* what remains of a cancelled job stays when its id is no longer remembered
-     if byte(member) > 127 then drop_notes(sub(member, 7)) end
! cancelling what runs
* one result too many is kept
- call('ZCARD', COMPLETED) - tonumber(bounds[1])
+ call('ZCARD', COMPLETED) - tonumber(bounds[1]) - 1
* the newest results are trimmed instead of the oldest
- call('ZRANGE', COMPLETED, 0, excess - 1)
+ call('ZRANGE', COMPLETED, 0, excess - 1, 'REV')
* a result is trimmed a millisecond early
- call('ZRANGE', EXPIRY, '-inf', now,
+ call('ZRANGE', EXPIRY, '-inf', now + 1,
* an id is forgotten whose result is removed with others
- unpackn('>I6', past, 2) + for_ms <= now
+ true
! retention
@ redis/claim/redis-settle.js
* a beat does not look at the fence
- if not claim or sub(claim, 1, 7) ~= pack('>I7', tonumber(ARGV[n + 1])) then
+ if not claim then
* startedAt is set by every beat
- said[1] = before[1] ~= '' and before[1] or started_at(said[1])
+ said[1] = started_at(said[1])
* a log begins with what is new
- (call('HGET', NOTES, 'l' .. id) or '') .. more
+ more .. (call('HGET', NOTES, 'l' .. id) or '')
! checkpoints and logs
@ redis/lua/lease-lua.js
* a beat may shorten the lease
- 'GT', ends_at
+ ends_at
* a beat shortens the lease that is shared
- elseif ends_at > tonumber(call('ZSCORE', LEASES, '\0' .. sub(claim, 1, 7)) or 0) then
+ else
* a claim that is renewed still counts as sharing its first lease
-     leave_lease(sub(claim, 1, 7), 1)
@ redis/records/redis-steps.js
* a step that is kept again is stored again
- if not kept then
+ if true then
! steps
* a job that has reached a step expires
- if has(flags, BEATEN) then call('HDEL', NOTES, 'x' .. id) end
+ local _
! steps
* a signal comes though its wait was over
- return before == 's' and 's' or 'g'
+ return 's'
! signals
* the signal that a job waits for may have no room
- if not is_awaited and not
+ if not
! signals
@ redis/lua/steps-lua.js
* a job that has its signal already waits all the same
-   if call('HEXISTS', STEPS, j.id .. '\\0g' .. signal) == 1 then
+   if false then
! signals
* nobody notices when the time of a wait is over
-   if until_at > 0 then call('ZADD', SIGNAL_WAITS, string.format('%.0f', until_at), j.seq .. j.id) end
! signals
@ redis/lua/prelude.js
* no death is kept
- if j.reports then keep_death(j, error) end
* a death lacks the error of the failure before
- j.reason, error or call('HGET', NOTES, 'e' .. j.id)
+ j.reason, error
* the mark behind the memory of an id is passed over
- tonumber(remember), mark == '!'
+ tonumber(remember), false
* the steps of a job stay when it is gone
-   if j.steps then late.entries().drop(j) end
! steps
* a shared lease stays when the last claim has left it
-   call('ZREM', LEASES, '\0' .. fence_bytes)
* what is taken from the middle of the ready list is not counted as left behind
-  else call('HINCRBY', META, 'stale', 1) end
+  end
* last in first out is forgotten
- return LIFO and inverted(bytes) or bytes
+ return bytes
* the past of a job that left becomes that of the next of its id
- return end
-   call('HDEL', HISTORY, j.id)
+ return end
* a cancelled job that fails is tried again
- elseif has(j.claim.flags, CANCEL) then finish(j, 'x')
-   else schedule
+ else schedule
* a job that never began leaves its remains when it is cancelled
- if j.claim or j.attempt > 1 or j.crashes > 0 or j.suspect or has_notes(j) then remains
+ if true then remains
* a job inherits what remains of a cancelled one with its id
-   if byte(memory) > 127 then drop_notes(id) end
* a dead job is there a millisecond longer than it is kept
- j.updated + tonumber(age) <= now
+ j.updated + tonumber(age) < now
! retention
* a lead is waited for for ever
- is_led(lead_at) return lead_at and now <= lead_at
+ is_led(lead_at) return lead_at and 0 <= lead_at
* a job that was taken expires no more
- call('ZADD', EXPIRING, expires_at, j.seq .. j.id)
* a waiting job that is cancelled or buried leaves its expiry behind
- if is_waiting(j) then call('ZREM', EXPIRING, j.seq .. j.id)
+ if false then
@ redis/lua/leads-lua.js
* a shared lease that ends takes renewed claims along
- if claim and has(byte(claim, 14) - 64, OWNLEASE) ~= is_shared and (
+ if claim and (
* a suspect is buried a crash late
- j.crashes >= max_crashes
+ j.crashes > max_crashes
* a lease that ends now is recovered a millisecond late
- call('ZRANGE', LEASES, '-inf', now,
+ call('ZRANGE', LEASES, '-inf', now - 1,
* a server that was started anew spares no lease
- return since + lease_ms
+ return 0
! starting anew
@ redis/records/redis-registry.js
* who is gone takes the claims of others along
-  and j.claim.worker == ARGV[1]
* a claim is adopted whoever holds it
- if sub(claim, 16, stop) ~= from then return 0 end
! adoption
* a superseded claim is adopted
- if not claim or sub(claim, 1, 7) ~= pack('>I7', tonumber(ARGV[2])) then
+ if not claim then
! adoption
@ redis/lua/ready-lua.js
* an element left behind in the ready list by a job of the same id is taken for it
- not pasts[i] and sub(records[i], 9, 14) == sub(elements[i], 8, 13)
+ not pasts[i]
! records: actions
* a job that has moved on is still taken from the ready list
- records[i] and not pasts[i] and
+ records[i] and
* the ready list goes before every priority
- return priority > 32767
+ return true
* of two ready jobs the younger goes first
- if stamp ~= other then return stamp < other end
+ if stamp ~= other then return stamp > other end
@ redis/claim/claim-plain-lua.js
* a claim alone is not marked so
- alone and ALONE or 0
+ 0
* two claims of one moment share a fence
- tonumber(last_fence) + 1
+ tonumber(last_fence)
* a job that was taken expires later
- many('ZREM', EXPIRING, members)
* a claim that ends jobs out of the middle of the ready list passes over too few stale elements
-     meta.stale, meta.lost = unpack(call('HMGET', META, 'stale', 'lost'))
-   end
+   end
! expiring
@ redis/claim/claim-loop-lua.js
* a job that is due now is promoted a millisecond late
- (now + 1) * 1000
+ now * 1000
* a claim that leaves jobs rings nobody
- if can or has_left then ring_unpaused()
+ if has_left then ring_unpaused()
! ringing
* who takes all there is does not take back the ring
- (unpackn('>I7', first) / 1000)) then call('DEL', WAKE) end
+ (unpackn('>I7', first) / 1000)) then end
! ringing
* of more expired jobs than one call ends, one is given
- if asked_for > 0 and is_open and not has_expired then
+ if asked_for > 0 and is_open then
! expiring
@ redis/enqueue/calls-lua.js
* a call that is sent again is carried out again
- if wanted[id] then found[id] = letters end
@ redis/records/redis-records.js
* a running job does not tell that it has fields
- if not has(j.claim.flags, BEATEN) then call('HSET', CLAIMS, id, with_flags(j.claim.text, j.claim.flags + BEATEN)) end
+ local _
! fields
* a fresh job does not tell that it has fields
-   call('HSET', HISTORY, id, write_past(j))
* a job with fields stays in the ready list
-     leave(j)
-     enter(j, 'r')
! fields
`)
