/** The mutations of the SQLite store's throttles, bounds, lanes and holds. */

import { mutationsIn } from './mutants.js'

export const sqliteLimitedMutations = mutationsIn(`
@ sqlite/rows/sqlite-lanes.js
* a lane opens a ms late
- shut_until <= ? ORDER BY
+ shut_until < ? ORDER BY
* a lane without jobs tells when it opens
- (grp <> '' OR ?2)
+ (grp <> '' OR ?2 IS NOT NULL)
! limits by group
* rules that are set open the lanes by their names
- OVER (ORDER BY shut_until, grp)
+ OVER (ORDER BY grp)
! scopes of throttles
@ rows/held-lanes.js
* what runs of groups counts as running without one
- queue.running - queue.grouped_running
+ queue.running
* a shut lane opens for a new job
- else if (lane.turn === null && lane.shut_until === null)
+ else if (lane.turn === null)
* a lane whose group is full keeps its turn
- lane.ready > 0 && this.roomIn(queue, grp) > 0
+ lane.ready > 0
* a short hold of a group ends a longer one
- Math.max(until, lane.held_until ?? until)
+ until
! holds
* a lane that is shut opens with its hold
- Math.max(until, lane.shut_until ?? until)
+ until
! holds
* a paused group has room
- this.of(queue, group).paused === 1
+ this.of(queue, group).paused === 2
* a hold that is released leaves its lane shut
- if (this.of(queue, group).shut_until !== null)
-             this.open
+ if (this.of(queue, group).turn !== null)
+             this.open
@ rules/fair-share.js
* a claim that takes nothing opens no lane
- if (limit <= 0)
+ if (limit < 0)
* a throttle is charged with what a claim may take
- deniedForMs(whole, '', taken)
+ deniedForMs(whole, '', Math.max(0, most))
* a claim that finds nothing lets the counter go on
- !whole.hasMore('')
+ false
* a hold of a group does not keep a suspect back
- const heldForMs = Math.max(0, queue.heldForMs(group))
+ const heldForMs = 0
* a suspect costs its group no permit
- startedIn(queue, suspect, taken)
+ startedIn(queue, suspect, 0)
* a hold of a group lasts a ms longer
- if (heldForMs > 0)
+ if (heldForMs >= 0)
* a lane that was shut is opened behind that
-     startedIn(queue, group, taken);
-     return taken;
+     startedIn(queue, group, taken);
+     queue.visited(group, queue.readyIn(group) > 0 && queue.roomIn(group) > 0);
+     return taken;
* a group has one turn more than its weight
- queue.turnsHad() + 1 <
+ queue.turnsHad() <
* the turns that a group has had count in its round once more
- turns + Math.max(0, weight - 1 - had)
+ turns + weight - 1
@ rows/dealt-row.js
* a lane that keeps its turn comes behind those that were looked up
- this.#turns = [];
+ this.#turns.unshift(group);
@ rules/fair-share.js
* what a throttle has denied in a queue is not shut
- (queue.ordinary > 0 || queue.suspects > 0)
+ taken > 0
@ rules/claim-waits.js
* a claim that takes the last jobs, and no more were asked for, leads
- taken > 0 && taken < limit
+ taken > 0 && taken <= limit
* a lead that asks at its time and leaves jobs leads on
- (taken > 0 || isClaimable) && !isShut
+ taken > 0 && !isShut
! waiting for throttles
@ rows/shard-limits.js
* maxRunning bounds each shard
- queue.shards === 1 ? [queue]
+ queue.shards > 0 ? [queue]
* jobs without a group are claimable though they are shut
- this.#lanes.shutUntil(queue, '') === undefined &&
* suspects alone are no reason to ask when a shut queue opens
- if (queue.ready === 0)
+ if (ordinary(queue) === 0)
* a shut queue opens with the first of its lanes
- if (whole > mono)
+ if (whole > mono && !hasLanes(queue))
* the end of a claim under maxRunning rings nobody
- max_running !== null || max_per_group !== null
+ max_per_group !== null
! bounds on what runs
* a job for a shut group that is led rings
- return Math.max(whole, this.#lanes.shutUntil(queue, group) ?? Number.NEGATIVE_INFINITY)
+ return whole
! waiting for throttles
@ rows/dealt-row.js
* lanes are visited last first
- Math.min(mostTurns, left)).reverse()
+ Math.min(mostTurns, left))
* a counter goes by the jobs of one shard of its scope
- .some((one) => !isStopped(one) &&
+ .slice(0, 1).some((one) => !isStopped(one) &&
* a counter goes by the jobs of paused queues too
- !isStopped(one) &&
! the rest of a throttle
@ sqlite/rows/sqlite-throttle-counter.js
* a window no longer sees a start that is as old as it
- tid = ? AND at >= ? ORDER BY at
+ tid = ? AND at > ? ORDER BY at
! throttling
* a window opens with its latest start
- nth <= ? ORDER BY nth DESC
+ nth >= ? ORDER BY nth DESC
* of an instant the last claim counts
- SET count = count + excluded.count
+ SET count = excluded.count
@ rows/throttle-row.js
* a window opens a ms early
- at + offset + forMs + 1
+ at + offset + forMs
* a counter may catch up with its buffer
- fewerFrom(limit - elasticBuffer)
+ fewerFrom(limit)
* a window opens without regard to what a recovery charged
- total + charged - most
+ total - most
@ rows/scope-throttle.js
! recovered throttles
* a subject is forgotten a ms early
- if (lastAt < at - longestCountedMs(rules))
+ if (lastAt <= at - longestCountedMs(rules))
! throttling
* the grids go on under other rules
- const grids = isOfRules ?
+ const grids = isOfRules || row.grids ?
* a counter that has nothing left to start keeps its credit
- hasMore ? gridAfter
+ count > 0 ? gridAfter
* who is denied in a silence is told of that alone
- forMs: Math.max(quietForMs, forMs) + late
+ forMs: quietForMs + late
! recovered throttles
* the wait is that for the newest rule
- Math.max(...each.map(({ forMs }) => forMs))
+ each.at(-1).forMs
* what a recovery charged is lost with the next start
- (row?.total ?? 0) + (charge?.count ?? 0)
+ (row?.total ?? 0)
* the count of all is one of a group
- this.#settings.eachGroup === undefined ? null : ''
+ null
* the silence for each group is not longer than that for all
- recovered(before, allRules(this.#settings),
+ recovered(before, this.#settings.rules,
* the grids of a group go on under other rules of its own
- { ...counter, epoch: noEpoch }
+ { ...counter }
* starts that may be late count from their grant
- Math.max(at + lateMs, seen?.lastAt ?? at)
+ Math.max(at, seen?.lastAt ?? at)
! waiting for throttles
* a start counts from before the one that came before it
- Math.max(at + lateMs, seen?.lastAt ?? at)
+ at + lateMs
! waiting for throttles
@ sqlite/rows/sqlite-throttle.js
* counters outlive the call that read them
-         this.#counters.forget();
* a silence is not written down
-     'quiet_until',
* a throttle holds for its queue alone
- SELECT name, shard FROM queue WHERE throttle = ?
+ SELECT name, shard FROM queue WHERE throttle = ? LIMIT 1
* a rate that is ended stays
- this.#delete.run(scope, group)
+ void this.#delete
@ sqlite/work/sqlite-settle.js
* a hold keeps one shard back
- of queues.rowsOf(name))
+ of queues.rowsOf(name).slice(0, 1))
* a short hold of a queue ends a longer one
- Math.max(shard.held_until ?? until, until)
+ until
* a job without a group that holds its group holds only those without one
- if (of === 'group' && job.grp !== null) {
-                 lanes.endLapsed(shard, mono, trimLimit);
-                 lanes.hold(shard, job.grp,
+ if (of === 'group') {
+                 lanes.endLapsed(shard, mono, trimLimit);
+                 lanes.hold(shard, job.grp ?? '',
@ sqlite/work/sqlite-completion.js
* a lane does not open when a claim of its group is completed
-                 this.#transaction.lanes.refresh(queue, grp);
! limits by group
* a completion holds nothing
-  && item.hold === undefined
@ rules/throttle/throttle-subjects.js
* a group with a rate of its own goes by the rules of all
- return rateOf(group) ??
+ return
* a group goes by the rules for all
- ?? throttle.eachGroup ??
+ ??
@ rows/queue-row.js
* rules for each group beside those for all make no lanes
- throttle_by === 'both'
+ throttle_by === 'none'
@ sqlite/records/sqlite-throttle-admin.js
* the rate of a group that is set leaves its lane shut
- lanes.look(row, group)
+ void lanes
@ rules/throttle/own-rates.js
* a group is forgotten when the windows of all groups are over, though its own goes on
- own?.longestMs ?? 0)
+ 0)
! rates of groups
@ rules/throttle/throttle-recovery.js
* a group that is silent for longer than the others is not
- if (count === 0 || silence === undefined)
+ if (count >= 0 || silence === undefined)
! rates of groups
`)
