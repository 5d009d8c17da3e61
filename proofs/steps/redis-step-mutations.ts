/**
 * The mutations of the steps, sleeps and signals of the Redis store: of its scripts, and of what else has to do with a job
 * that has reached a step or waits.
 */

import { mutationsIn } from '../models/mutants.js'

export const redisStepMutations = mutationsIn(`
@ redis/records/redis-steps.js
* a lost claim keeps a step
- if not claim or sub(claim, 1, 7) ~= pack('>I7', tonumber(ARGV[2])) or
+ if not claim or
* a step does not renew the lease
- local flags = renew(id, claim, now + tonumber(ARGV[3]))
+ local flags = byte(claim, 14) - 64
* a claim that is renewed by a step still counts as sharing its first lease
- call('HSET', CLAIMS, id, with_flags(claim, flags))
+ local _
* a job that has reached a step still expires
- if has(flags, BEATEN) then call('HDEL', NOTES, 'x' .. id) end
+ local _
* a step that is kept is kept anew
- if not kept then
+ if true then
* a step is not kept if a signal has its name
- 0n' .. name))
+ 0g' .. name))
* the first step of a job does not mark it
- if not totals then entries().mark(job(id), true) end
+ local _
* the worker of a cancelled job does not hear of it with a step
- return has(flags, CANCEL) and 'c' or 'o'
+ return 'o'
! steps
* the run of a cancelled job keeps no step
- if not kept then
+ if not (kept or has(flags, CANCEL)) then
* a sleep has no end
- ARGV[4], name, ARGV[6], ARGV[7])
+ ARGV[4], name, ARGV[6])
* a step has no value
- ARGV[4], name, ARGV[6], ARGV[7])
+ ARGV[4], name, '', ARGV[7])
* nobody learns when a step has renewed a lease, if then the clock is set back
- call('HSET', META, 'seenAt', now)
+ local _
! clocks that are set back
* the steps of a job beyond its age in the morgue are shown
- if not j or is_hidden(j) then return false end
+ if not j then return false end
! steps
* a job without steps is not there
- if not j.steps then return rows end
+ if not j.steps then return false end
* a step of a job beyond its age in the morgue is forgotten
- return j and j.steps and not is_hidden(j) and
+ return j and j.steps and
! steps
* a step that is forgotten is told to be none
- remove(j, ARGV[2]) and 1 or 0
+ remove(j, ARGV[2]) and 0 or 0
* a signal to a completed job is kept
- if not j or (j.state == 'c' and not j.claim) or is_hidden(j) then
+ if not j or is_hidden(j) then
! signals
* a signal to a job beyond its age in the morgue is kept
- if not j or (j.state == 'c' and not j.claim) or is_hidden(j) then
+ if not j or (j.state == 'c' and not j.claim) then
! signals
* a signal to a job that has kept a result before finds nobody
- (j.state == 'c' and not j.claim)
+ j.state == 'r'
* a second signal takes the place of the first
- if before then return before == 's' and 's' or 'g' end
+ if before == 't' then return 'g' end
* a signal after a wait in vain is a duplicate
- if before then return before == 's' and 's' or 'g' end
+ if before then return 's' end
* a signal after a wait in vain is kept
- if before then return before == 's' and 's' or 'g' end
+ if before == 's' then return 's' end
* any signal ends the wait of a job
- entries().awaited(j) == name
+ entries().awaited(j) ~= nil
* no signal ends the wait of a job
- entries().awaited(j) == name
+ false
* the signal that a job waits for needs room
- if not is_awaited and not entries().has_room
+ if not entries().has_room
! signals
* a job keeps any number of signals
- if not is_awaited and not entries().has_room(j.id, value) then return 'f' end
+ local _
! signals
* the data of a signal that a job waited for is not kept
- entries().add(j, 's', name, value)
- if not is_awaited then
+ if not is_awaited then entries().add(j, 's', name, value)
* a signal is delivered, and wakes nobody
- entries().wake(j)
- return 'd'
+ return 'd'
* a sweep ends a wait a second early
- call('ZRANGE', SIGNAL_WAITS, '-inf', now, 'BYSCORE',
+ call('ZRANGE', SIGNAL_WAITS, '-inf', now + 1000, 'BYSCORE',
* a sweep ends a wait a millisecond late
- call('ZRANGE', SIGNAL_WAITS, '-inf', now, 'BYSCORE',
+ call('ZRANGE', SIGNAL_WAITS, '-inf', now - 1, 'BYSCORE',
* a sweep ends the latest waits first
- call('ZRANGE', SIGNAL_WAITS, '-inf', now, 'BYSCORE',
+ call('ZRANGE', SIGNAL_WAITS, now, '-inf', 'BYSCORE', 'REV',
! signals
* a sweep ends any number of waits
- for i = 1, math.min(#due, most) do
+ for i = 1, #due do
! signals
* a sweep does not say that more waits are over
- return { woken, #due > most and 1 or 0 }
+ return { woken, 0 }
! signals
* a wait in vain leaves no entry
- entries().add(j, 't', signal, '')
+ local _
* a wait in vain leaves a signal
- entries().add(j, 't', signal, '')
+ entries().add(j, 's', signal, '')
* a job whose wait was in vain waits on
-     entries().wake(j)
-     woken =
+     woken =
* a sweep counts no job that it wakes
- woken = woken + 1
+ woken = woken + 0
@ redis/lua/steps-lua.js
* a step of its name stands for a signal
- 0g' .. name)
+ 0n' .. name)
* the claim of a job with steps does not say so
- if j.claim and not has(j.claim.flags, HASHISTORY) then
+ if false then
! steps
* a job with a signal stays in the ready list
- elseif not j.claim and j.state == 'l' then
+ elseif false then
* a signal changes the instant at which a job was changed
- j.updated = updated
+ local _
* the past of a job does not say that it has entries
- j.fresh = false
-   call('HSET', HISTORY, j.id, write_past(j))
+ j.fresh = false
* the codec of its data counts among the bytes of a signal
- and 0 or #value -
+ and 0 or 10 + #value -
! signals
* a wait in vain takes a place among the signals
- if kind == 's' then signals,
+ if kind ~= 'p' then signals,
! signals
* the bytes of signals are not counted
- bytes + data_bytes(value) end
+ bytes end
! signals
* signals are not counted
- if kind == 's' then signals, bytes = signals + 1,
+ if kind == 's' then signals, bytes = signals,
! signals
* an entry gets the number of one that was forgotten
- pack(TOTALS, last + 1, count + 1,
+ pack(TOTALS, count + 1, count + 1,
* a wait in vain has its name among the steps
- (kind == 's' or kind == 't') and 'g' or 'n'
+ kind == 's' and 'g' or 'n'
* a sleep is over when it begins
- now, sleep_ms and after(sleep_ms) or 0)
+ now, sleep_ms and now or 0)
* the place of a step that is forgotten stays
- call('HDEL', STEPS, field, index(j.id, unpackn('>I4', entry, 2)))
+ call('HDEL', STEPS, field)
* a job whose only step is forgotten is marked as one with steps
- if count > 1 then call(
+ if count > 0 then call(
! steps
* a job with another entry is marked as one without when a step is forgotten
- if count > 1 then call(
+ if count > 2 then call(
* of many entries only the first 500 are read
- for first = 1, last, 500 do
+ for first = 1, math.min(last, 500), 500 do
! steps
* a sleep that is over ends anew when its job is run now
- unpackn('>I6', entry, 12) > now then
+ unpackn('>I6', entry, 12) > 0 then
! steps
* a job that is run now goes on sleeping
- if sub(entry, 1, 1) == 'z' and
+ if sub(entry, 1, 1) == 'x' and
! steps
* the entries of a job stay when it ends
- many('HDEL', STEPS, fields)
+ local _
* the number of the last entry stays when a job ends
- call('HDEL', STEPS, j.id)
-   j.steps = false
+ j.steps = false
* one signal too many has room
- return signals < $
+ return signals <= $
! signals
* data of any size has room
- bytes + data_bytes(value) <=
+ 0 * bytes <=
! signals
* a job that waits may expire
- function M.wait(j, signal, ms)
-   stay(j)
+ function M.wait(j, signal, ms)
* a signal that came before the wait is overlooked
- end_wait(j)
-     return enter(j, 'r')
+ local _
* a wait that ends at once leaves the lag of its job as it was
- end_wait(j)
-     return enter(j, 'r')
+ return enter(j, 'r')
* a wait has no bound
- if until_at > 0 then call('ZADD'
+ if false then call('ZADD'
* a failed job that waits counts as a retry
- enter(j, 'a')
-   if j.attempt > 1 then move_retry(j, retry) end
+ enter(j, 'a')
! signals
* a failed job that has waited counts as no retry
- enter(j, 'r')
-   if j.attempt > 1 then move_retry(j, retry) end
+ enter(j, 'r')
* the lag of a job that has waited counts from before
- leave(j)
-   end_wait(j)
-   enter(j, 'r')
+ leave(j)
+   enter(j, 'r')
* a signal rings nobody
- if is_calling(j) then ring_unpaused() end
+ local _
! signals
@ redis/claim/settle-script.js
* a cancelled job waits
- if has(j.claim.flags, CANCEL) then finish(j, 'x') else j.crashes = 0 entries()
+ if false then finish(j, 'x') else j.crashes = 0 entries()
* a job that waits keeps its crashes
- else j.crashes = 0 entries()
+ else entries()
! signals
* a job with a kept result keeps its steps
- if j.steps then entries().drop(j) end
+ local _
@ redis/claim/redis-settle.js
* no sweep looks at a queue whose jobs wait
- item.kind === 'wait' && item.withinMs !== undefined
+ false
@ redis/lua/prelude.js
* a job that is gone leaves its steps behind
- if j.steps then late.entries().drop(j) end
+ local _
* what is shown of a job does not tell of its steps
- j.steps and string.upper(j.state) or j.state
+ j.state
* a wait that is over is still to end in vain
-     call('ZREM', SIGNAL_WAITS, j.seq .. j.id)
+     local _
* an operator who lists retries finds failed jobs that wait
- (j.state == 'a' and not j.claim) and 2 ^ 24 - 1 or j.attempt
+ j.attempt
! signals
@ redis/records/change-script.js
* a job that is run now sleeps on
- if verb == 'run' and j.steps then
+ if false then
! steps
@ redis/enqueue/enqueue-script.js
* a job that has reached a step is replaced
- (j.places or j.steps or j.state == 'a')
+ (j.places or j.state == 'a')
* a job that waits for a signal is replaced
- (j.places or j.steps or j.state == 'a')
+ (j.places or j.steps)
@ redis/joins/join-scripts.js
* a queue in which jobs wait for signals alone is soon swept no more
- call('EXISTS', SIGNAL_WAITS, JOIN_TASKS)
+ call('EXISTS', JOIN_TASKS)
! signals
`)
