/** The mutations of the Redis store's ordered queues, and of how it merges the payloads of an id. */

import { mutationsIn } from './mutants.js'

export const redisOrderedMutations = mutationsIn(String.raw`
@ redis/enqueue/enqueue-ordered-script.js
* of equal payloads that are pushed the maximal score stays
- if equal and not is_before(value, equal) then return end
+ if equal and is_before(value, equal) then return end
* of equal payloads that are pushed the maximal score stays in the record
- is_before(value, before)
+ is_before(before, value)
* a second payload takes the place of the first
-     add(id, sub(rec, from, from + 21), before)
* of merge latest the first stays in the record
- if is_first == is_equal then
+ if is_first then
* equal payloads are one whatever the rule
- DISTINCT and 1 or 23
+ 1
* merge distinct keeps all
- DISTINCT and 1 or 23
+ 23
* payloads of one call arrive with one stamp
-   stamp = next_stamp(stamp)
-   came = true
+   if not came then stamp = next_stamp(stamp) end
+   came = true
* the time of a job is the default score of its payload
- last_score = math.max(stamp, last_score + 1)
+ last_score = math.max(own_stamp, last_score + 1)
* a payload that waits already needs room again
- return not equal_at(field, id)
+ return true
* a merge into the latest needs room
- if LATEST then return not there[id] or there[id] == 'u' end
+ if LATEST then return true end
* maxPending counts jobs
- waiting = waiting or payload_count(meta[10])
+ waiting = waiting or call('HLEN', JOBS)
* what begins to wait beside a running job is due at once
- write_successor(own_stamp, now, due_state == 'r')
+ write_successor(stamp, now, due_state == 'r')
* each push beside a running job changes the stamp of what waits there
- elseif state == 'u' then
+ elseif state ~= 'w' then
* what comes into a shard under a running batch rings
- rings_ready and not is_full()
+ rings_ready
! the form of an ordered queue
@ redis/lua/payloads-lua.js
* of equal payloads that come back the maximal score stays
- if not equal or is_before(value, equal) then
+ if not equal or is_before(equal, value) then
* of equal payloads with the same score the latest stays
- return c < z
+ return c > z
* scores below 0 do not stand in their order
- for i = 1, 8 do b[i] = 255 - b[i] end
* of merge latest the first stays
-   members[#members] = nil
+   table.remove(members, 1)
* merge latest keeps all
-   if LATEST then keep_last(set, bodies, id) end
* a payload in a record needs no room
- call('ZCARD', PAYLOADS) + call('HLEN', JOBS) - call('HLEN', CLAIMS) - tonumber(many or 0)
+ call('ZCARD', PAYLOADS)
* what joins the payload in a record takes its place
-     add_payloads(PAYLOADS, BODIES, id, own)
@ redis/format/redis-payload.js
* an equal payload with another meta is another payload
- digestOf(payloadContent(job))
+ digestOf(payloadContent(job) + String(meta))
* payloads of one score are one whatever they say
- digestOf(payloadContent(job))
+ digestOf('')
@ rules/payloads.js
* text and bytes that say the same are equal
- codec}\0b
+ codec}\0t
* an equal payload with the same given score is another one
- score === undefined ?
+ true ?
@ redis/enqueue/redis-enqueue.js
* equal payloads of one call are one if they have no score
- place: places?.[i] ?? i
+ place: 0
* equal payloads at the same place of two calls are one if they have no score
- callId: wholeCallId,
+ callId: '',
* a call sent again to a shard that forgot it adds its payloads again
- place: places?.[i] ?? i
+ place: i
! equal payloads in an ordered queue
@ redis/lua/ordered-lua.js
* a job that goes into another shard leaves its fields behind
-   if j.fields then call('HSET', NOTES, 'f' .. id, j.fields) end
* a payload in hand that is in its record is dropped where something waits beside
-   call('HDEL', CLAIMED_PAYLOADS, j.id)
-   local _, rec = own_list(j.id)
+   if call('HDEL', CLAIMED_PAYLOADS, j.id) == 0 then list = {} end
+   local _, rec = own_list(j.id)
* what waits beside is dropped on failure
-   if last then return exhaust(j, reason) end
+   drop_successor(j.id)
+   if last then return exhaust(j, reason) end
* what is in hand is dropped on failure where something waits beside
- goingBack('  give_back(j, hand_of(j.id))
+ goingBack('  give_back(j, successor_of(j.id) and {} or hand_of(j.id))
* what waited beside begins with the attempts of the job before it
- begin(is_ready and 'r' or state_at(stamp), j.id, name_of(j), stamp, created)
+ begin(is_ready and 'r' or state_at(stamp), j.id, name_of(j), stamp, created, { attempt = j.attempt })
* the last failure buries the newest payload
- local digest, oldest = table.remove(list, 1), table.remove(list, 1)
+ local digest, oldest = table.remove(list, #list - 1), table.remove(list)
* the last failure buries all payloads
- { digest, oldest }, reason, last_error(j), now)
+ { digest, oldest, unpack(list) }, reason, last_error(j), now)
+   list = {}
* the attempts go on after the last failure
- j.attempt, j.crashes, j.reason, j.stamp = 1, 0, nil, stamped()
+ j.crashes, j.reason, j.stamp = 0, nil, stamped()
+   list_failed(j)
* the crashes go on after one too many
- j.attempt, j.crashes, j.reason, j.stamp = 1, 0, nil, stamped()
+ j.attempt, j.reason, j.stamp = 1, nil, stamped()
* what is left after the last failure keeps its error
-   call('HDEL', NOTES, 'e' .. j.id)
-   j.attempt,
+   j.attempt,
* what is left after the last failure goes before those that wait
- j.reason, j.stamp = 1, 0, nil, stamped()
+ j.reason = 1, 0, nil
* a cancelled job that fails is tried again
-   if has(j.claim.flags, CANCEL) then return finish(j) end
* an entry in the morgue was made when the last of it was buried
-     created = before.created
* what the morgue has kept too long comes back with the next burial of its id
- if before and is_hidden(before) then drop_dead(before)
-   elseif before then
+ if before then
@ redis/claim/claim-ordered-lua.js
* what a claim leaves behind was created now
- pack('>I7', stamp) .. created
+ pack('>I7', stamp) .. pack('>I6', now)
* what a claim leaves behind has the stamp of the last
-       stamp = next_stamp(stamp)
* a claim takes a payload more than it may
- (i > max or
+ (i > max + 1 or
@ redis/claim/claim-loop-lua.js
* a shard of batches grants while one runs
- local is_open = not STOPPED and not is_full() and
+ local is_open = not STOPPED and
* one claim takes batches of several shards
-   over = granted > 0 and EXCLUSIVE
@ redis/claim/settle-script.js
* a settle does not look at the fence
- if not claim or sub(claim, 1, 7) ~= bytes then
+ if not claim then
* what waits beside a job that completes goes with it
-  and not follows[id]
* what waits beside a job of a run that is settled at once goes with it
-  or follows[id]
! ends of claims in an ordered queue
* the last payload in hand is done with the others
- math.min(count, number - 1)
+ math.min(count, number)
* what is left behind payloads that are done has failed as often as they had
- j.attempt, j.crashes = 1, 0
+ j.crashes = 0
* what is left behind payloads that are done keeps their error
-   j.attempt, j.crashes = 1, 0
-   call('HDEL', NOTES, 'e' .. j.id)
+   j.attempt, j.crashes = 1, 0
! ends of which some payloads are done
* the reason of a release is lost
-     if b ~= '' then call('HSET', NOTES, 'e' .. id, given(b)) end
* a cancelled job that is released comes back
- if has(j.claim.flags, CANCEL) then finish(j, 'x')
-     else
+ if false then finish(j, 'x')
+     else
* the end of a batch rings nobody
- (EXCLUSIVE or limits().limited) and lanes.has_freed()
+ false
! the form of an ordered queue
@ redis/claim/retention-lua.js
* of too many dead the newest go
- call('ZRANGE', DEAD, 0, excess - 1)) do drop_dead
+ call('ZRANGE', DEAD, 0, excess - 1, 'REV')) do drop_dead
@ redis/claim/redis-settle.js
* what is done goes back with the others
- String(item.done ?? 0)
+ '0'
@ redis/records/change-script.js
* what waits beside a running job for later is not run now
- if verb == 'run' then states = states .. 'u' end
* what waits beside a running job and is due is counted as run now
- math.floor(stamp / 1000) <= now
+ false
* what waits beside a cancelled job is not cancelled
-     drop_successor(j.id)
* what is revived while its id is alive is lost
- add_waiting(d.id, j, list)
+ if not j then add_waiting(d.id, j, list) end
* what is revived beside a running job keeps the stamp of what waits there
- write_successor(stamp, created or d.created, true)
+ write_successor(successor_of(d.id) or stamp, created or d.created, true)
@ redis/lua/prelude.js
* of two ids at the same moment the greater goes first
- if one ~= other then return one < other end
+ if one ~= other then return one > other end
@ redis/shards/redis-shard-migration.js
* a reshard loses the morgue
- if not is_hidden(d) then found
+ if not is_hidden(d) and not gives_up then found
* a reshard loses counters
- { 'processed', 'failed', 'crashed' }
+ { 'processed', 'failed' }
* a reshard that waits for running jobs still grants
-     call('HSET', META, 'resharding', 1)
* what is moved loses its order among equal scores
- pack('>I6', seq) .. sub(value, 15)
+ pack('>I6', 999999 - seq) .. sub(value, 15)
@ redis/shards/redis-reshard.js
* a queue that is resharded keeps its bounds whole in each shard
- Math.ceil(Number(bound) / shards)
+ Number(bound)
@ redis/lua/transit-lua.js
* what is moved to a running job changes the stamp of what waits beside it
- call('HSETNX', SUCCESSORS,
+ call('HSET', SUCCESSORS,
* what is moved into the morgue has the header of the last that came
- if here and here.updated > d.updated then
+ if false then
* what is moved begins with its first attempt
- { updated = updated, attempt = attempt,
+ { updated = updated, attempt = 1,
* what has become due is scheduled still where it is moved
-   if state == 's' then state = state_at(stamp) end
`)
