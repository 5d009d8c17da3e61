/** The mutations of the steps, sleeps and signals of the SQLite store. */

import { mutationsIn } from '../models/mutants.js'

export const sqliteStepMutations = mutationsIn(`
@ sql/sql-job-steps.js
* entries are read in the order of their names
- rows.sort((a, b) => a.n - b.n);
+ rows.sort((a, b) => (a.name < b.name ? -1 : 1));
* a signal is not kept if a step has its name
- isSignalEntry({ kind }) ? 1 : 0
+ 0
* to forget a step forgets a signal of its name
- rid = ? AND is_signal = ? AND name = ?'
+ rid = ? AND ? < 2 AND name = ?'
* a wait in vain takes a place among the signals
- is_signal = 1 AND kind = \${kinds.indexOf('signal')}
+ is_signal = 1
! signals
* a sleep that is over ends anew when its job is run now
- is_signal = 0 AND until > ?
+ is_signal = 0 AND until > 0 * ?
! steps
* a sweep ends the latest waits first
- ORDER BY until, rid LIMIT ?
+ ORDER BY until DESC, rid LIMIT ?
! signals
* a sweep ends a wait a millisecond late
- WHERE until <= ? ORDER BY
+ WHERE until < ? ORDER BY
@ sqlite/records/sqlite-step-calls.js
* the step of a lost claim counts as kept
- undefined)
-             return 'lost'
+ undefined)
+             return 'ok'
! steps
* a signal to a completed job is kept
- job === undefined || job.state === completed)
-             return 'gone'
+ job === undefined)
+             return 'gone'
! signals
* a signal after a wait in vain is a duplicate
- before === 'signal' ? 'duplicate' : 'gone'
+ 'duplicate'
* any signal ends the wait of a job
- wait?.signal === name
+ wait !== undefined
* the signal that a job waits for needs room
- !isAwaited && !this.#hasRoom(job, data)
+ !this.#hasRoom(job, data)
! signals
* one signal too many has room
- count < mostSignals
+ count <= mostSignals
! signals
* a signal is delivered, and wakes nobody
- this.#wake(this.#transaction.queues.get(key.queue), job.rid, now);
+ {}
* a job whose only step is forgotten is marked as one with steps
- this.#transaction.jobSteps.unmark(rid, noteBits.steps)
+ void rid
! steps
* a job that has reached a step still expires
- || job.expires_at !== null
+ || false
! steps
@ sqlite/rows/sqlite-job-steps.js
* a signal ends the expiry of a job
- noted = noted | ? WHERE rid = ?
+ noted = noted | ?, expires_at = NULL WHERE rid = ?
* the steps of a job stay when it ends
- if (noted & noteBits.steps)
+ if (false)
! steps
! steps
* a wait that is over is still to end in vain
- this.#host.run(endWait(rid));
-         this.unmark
+ this.unmark
@ sqlite/rows/sqlite-job.js
* a signal that came before the wait is overlooked
- const isThere = this.#steps.hasSignal(job.rid, wait.signal)
+ const isThere = false
`)
