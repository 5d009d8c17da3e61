/**
 * The mutations of the reports of members in the Redis store: for each way in which a member of a join can end, one that
 * drops its report; and some that report what is no end, or count an end twice.
 */

import { mutationsIn } from '../models/mutants.js'

export const redisJoinMutations = mutationsIn(`
@ redis/claim/settle-script.js
* a completed member is unheard
- finish(j, 'c', kind == 'j' and a or nil)
+ if kind == 'c' then j.places = nil end finish(j, 'c', kind == 'j' and a or nil)
! the ends of members
* a completed member with a result for its joins is unheard
- finish(j, 'c', kind == 'j' and a or nil)
+ if kind == 'j' then j.places = nil end finish(j, 'c', a)
! the ends of members
* the result of a completed member is not handed over
- finish(j, 'c', kind == 'j' and a or nil)
+ finish(j, 'c')
! the ends of members
* a completed member with a kept result is unheard
- if j.places then joins().kept(j, result) end
+ local _
! the ends of members
* the last failure of a member is unheard
- fail_claim(j, tonumber(a), b == '1', given(c), given(d))
+ if b == '1' then j.places = nil end fail_claim(j, tonumber(a), b == '1', given(c), given(d))
! the ends of members
* a member is unheard that fails after its cancellation was asked for
- fail_claim(j, tonumber(a), b == '1', given(c), given(d))
+ if has(j.claim.flags, CANCEL) then j.places = nil end fail_claim(j, tonumber(a), b == '1', given(c), given(d))
! the ends of members
* a member is unheard that is released after its cancellation was asked for
- if has(j.claim.flags, CANCEL) then finish(j, 'x')
+ if has(j.claim.flags, CANCEL) then j.places = nil finish(j, 'x')
! the ends of members
* a member that its handler buries is unheard
- bury(j, given(b), given(a))
+ j.places = nil bury(j, given(b), given(a))
! the ends of members
* a member that its handler cancels is unheard
- know_run(j, b)
-     finish(j, 'x')
+ know_run(j, b)
+     j.places = nil finish(j, 'x')
! the ends of members
* members that complete together leave like jobs that are none
- byte(claim, 14) - 64 >= HASHISTORY or
+ byte(claim, 14) - 64 >= BEATEN or
! the ends of members
* a member of several joins whose result is kept is unheard
- return rec and not select(5, written(rec))
+ return rec
! the ends of members
* what settled members report is not written
- if REPORTS and \${parts[kind].flush} then return
+ if false then return
! the ends of members
@ redis/claim/retention-lua.js
* a dead member beyond the bound or the age of the morgue is unheard
- lost_at = math.max(lost_at, j.updated)
+ lost_at, j.places = math.max(lost_at, j.updated), nil
! joins that die
@ redis/claim/redis-settle.js
* joins in other shards are not told of settled members
- tells ? queues.reports.deliver(shard) : undefined
+ undefined
! the ends of members
@ redis/lua/leads-lua.js
* a member is unheard that crashes after its cancellation was asked for
- if has(j.claim.flags, CANCEL) then finish(j, 'x')
+ if has(j.claim.flags, CANCEL) then j.places = nil finish(j, 'x')
! the ends of members
* a member that crashes too often is unheard
- local fence = j.claim.fence
+ local fence = j.claim.fence j.places = nil
! the ends of members
@ redis/records/redis-registry.js
* what members report whose worker is found dead is not written
- if REPORTS and joins().flush() then return { crashed, buried, 1 } end
+ local _
! the ends of members
* joins in other shards are not told of members whose worker is found dead
- if (tells !== undefined)
+ if (false)
! the ends of members
@ redis/claim/claim-plain-lua.js
* an expired member is unheard
- if j.places then joins().report(j, 'e') end
+ j.places = nil
! the ends of members
* an expired member is reported as cancelled
- if j.places then joins().report(j, 'e') end
+ local _
! the ends of members
* the id of a member that completes is not remembered
- '^0 (%d+%.%d+)%z'
+ '^%d+ (%d+%.%d+)%z'
! the ends of members
* a member of two joins is reported to one of them
- '^0 (%d+%.%d+)%z'
+ '^0 (%d+%.%d+)'
! the ends of members
@ redis/claim/claim-loop-lua.js
* what a claim finds ended is not written
- if REPORTS and joins().flush() then tells[#tells + 1] = n end
+ local _
! the ends of members
@ redis/claim/redis-claim-call.js
* joins in other shards are not told of what a claim finds ended
- telling.add(shard);
+ void 0;
! the ends of members
@ redis/records/change-script.js
* a waiting member that is cancelled is unheard
- j.reason = reason
-       finish(j, 'x')
+ j.reason, j.places = reason, nil
+       finish(j, 'x')
! the ends of members
* a member that is deleted or cleared is unheard
- elseif verb == 'delete' then drop(j)
+ elseif verb == 'delete' then j.places = nil drop(j)
! the ends of members
* a member that an operator buries is unheard
- elseif verb == 'bury' then bury(j, 'buried')
-   else
-     local state
+ elseif verb == 'bury' then j.places = nil bury(j, 'buried')
+   else
+     local state
! the ends of members
* what members report that an operator ends is not written
- local tells = REPORTS and joins().flush() and 1 or 0
+ local tells = 0
! the ends of members
@ redis/records/redis-records.js
* joins in other shards are not told of members that an operator ends
- if (tells === 1)
+ if (false)
! the ends of members
* joins in other shards are not told of a member that fails because an operator says so
- if (asked === 2)
+ if (false)
! the ends of members
@ redis/shards/queue-state-script.js
* a member is unheard that fails for the last time, because an operator says so
- fail_claim(j, tonumber(ARGV[3]), ARGV[4] == '1', ARGV[5], ARGV[5])
+ j.places = nil fail_claim(j, tonumber(ARGV[3]), ARGV[4] == '1', ARGV[5], ARGV[5])
! the ends of members
* what a member reports that fails, because an operator says so, is not written
- if REPORTS and joins().flush() then return 2 end
+ local _
! the ends of members
@ redis/enqueue/enqueue-script.js
* what a dead member reports that another job replaces is not written
- local tells = REPORTS and joins().flush()
+ local tells = false
! joins that die
@ redis/enqueue/redis-enqueue.js
* joins in other shards are not told of a dead member that another job replaces
- await queues.reports.deliver(shard);
+ void 0;
! joins that die
@ redis/joins/join-scripts.js
* a member that its dead join cancels is unheard by its other joins
- , true
-     finish(j, 'x')
+ , true
+     j.places = nil finish(j, 'x')
! the ends of members
@ redis/joins/redis-joins.js
* joins in other shards are not told of members that a dead join cancels
- if (tells === 1)
+ if (false)
! the ends of members
* joins in other shards are not told of a join that is late
- await this.#queues.reports.deliver(shard);
+ void 0;
! the ends of members
@ redis/lua/prelude.js
* no death of a member is heard
- if j.places then late.joins().report(j, 'd', error or call('HGET', NOTES, 'e' .. j.id)) end
+ local _
! the ends of members
* the error of a dead member is not handed over
- report(j, 'd', error or call('HGET', NOTES, 'e' .. j.id))
+ report(j, 'd')
! the ends of members
* a failure, a release and a crash are reported
- local function put_back(j, suspect)
+ local function put_back(j, suspect) if j.places then late.joins().report(j, 'x') end
! the ends of members
@ redis/lua/joins-lua.js
* a second report of a member counts
- if has_bit or was_dead then
+ if false then
! the ends of members
* members that complete are not counted
- if count > 0 then f.c, f.version = f.c + count, f.version + count end
+ local _
! the ends of members
* the results of members that complete together are not handed over
- if left then keep_result(f, serial .. '.' .. numbers[i], left) end
+ local _
! the ends of members
* an end counts twice
- f[fate], f.version = f[fate] + 1, f.version + 1
+ f[fate], f.version = f[fate] + 2, f.version + 1
! the ends of members
* a dead member that is deleted is reported again, though its set went on
- if not was_dead or fate ~= 'x' or f.on_dead == GO_ON then return end
+ if not was_dead or fate ~= 'x' then return end
! joins that die
* a dead member that goes for good is unheard
- if not was_dead or fate ~= 'x' or f.on_dead == GO_ON then return end
+ do return end
! joins that die
* a fragment does not tell that its last member has ended
- return (done == f.count or
+ return (
! the ends of members
* a fragment does not tell of an end that makes its join dead
- or f.fails > f.told_fails
+ or false
! the ends of members
* of fragments that fail in one instant not the first is told first
- before - now, 'f' .. serial
+ -now, 'f' .. serial
! joins that die
* a fragment does not tell of a revived member
- or done < f.told_done
+ or false
! joins that die
* a revived member is not outstanding again
- report_revived(j)
-   return becomes
+ return becomes
! joins that die
* a revived member changes a join that will run
- if f and f.frozen == 0 and is_dead(f, field) then
+ if f and is_dead(f, field) then
! joins
* the death of a join by its member is unheard by the joins that wait for it
- bury(j, reason, error)
+ j.places = nil bury(j, reason, error)
! the ends of members
@ redis/shards/redis-join-reports.js
* only the first fragment of a look is told
- rows.map(async (row) => {
+ rows.slice(0, 1).map(async (row) => {
! the ends of members
* what follows from a report is left to a sweep
- left = next;
+ left = new Map();
! the ends of members
`)

/** Changes by which reports come twice. */
export const redisRepeats = mutationsIn(`
@ redis/shards/redis-join-reports.js
* what was told is told again
- await this.#queues.run(shard, toldScript,
+ await this.hear(shard, key, parts, tells), await this.#queues.run(shard, toldScript,
! joins that die
@ redis/lua/joins-lua.js
* each member reports twice
- for serial, place in string.gmatch(j.places, '(%d+)%.(%d+)') do
-     M.report_at(
+ for serial, place in string.gmatch(j.places .. ' ' .. j.places, '(%d+)%.(%d+)') do
+     M.report_at(
! the ends of members
`)
