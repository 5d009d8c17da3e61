/** The mutations of the enqueue script of the Redis store. */

import type { Mutation } from './mutants.js'

export const redisEnqueueMutations: readonly Mutation[] = [
  {
    what: 'no id that comes in the short form is looked up',
    file: 'redis/enqueue/enqueue-script.js',
    from: "local are_new = sub(ARGV[1], -1) == 'n'",
    to: "local are_new = sub(ARGV[1], -1) ~= 'r'",
  },
  {
    what: 'an ended id is remembered a millisecond longer',
    file: 'redis/enqueue/enqueue-script.js',
    from: "unpackn('>I6', ended[n], 33) > now",
    to: "unpackn('>I6', ended[n], 33) >= now",
  },
  {
    what: 'a job for later rings also where somebody leads',
    file: 'redis/enqueue/enqueue-script.js',
    from: 'rings or not (is_led(lead_at) and lead_at <= due)',
    to: 'true',
    concern: 'ringing',
  },
  {
    what: 'an enqueue rings nobody',
    file: 'redis/enqueue/enqueue-script.js',
    from: 'if rings and not paused then ring() end',
    to: '',
    concern: 'waiting',
  },
  {
    what: 'of jobs that are added at once one may be there already',
    file: 'redis/enqueue/enqueue-script.js',
    from: 'if records[n] or ended[n] or added[id] then',
    to: 'if ended[n] or added[id] then',
  },
  {
    what: 'of jobs that are added at once one may have ended a moment ago',
    file: 'redis/enqueue/enqueue-script.js',
    from: 'if records[n] or ended[n] or added[id] then',
    to: 'if records[n] or added[id] then',
  },
  {
    what: 'of jobs that are added at once two may have the same id',
    file: 'redis/enqueue/enqueue-script.js',
    from: 'if records[n] or ended[n] or added[id] then',
    to: 'if records[n] or ended[n] then',
    concern: 'enqueueing',
  },
  {
    what: 'jobs that are added at once may be more than there is room for',
    file: 'redis/enqueue/enqueue-script.js',
    from: ' or count > room() then return nil end',
    to: ' then return nil end',
  },
  {
    what: 'jobs that are added at once are taken by a queue that drains',
    file: 'redis/enqueue/enqueue-script.js',
    from: 'if LIFO or draining or first',
    to: 'if LIFO or first',
    concern: 'records: actions',
  },
  {
    what: 'jobs that are added at once stand in the ready list of a queue that takes the last one first',
    file: 'redis/enqueue/enqueue-script.js',
    from: 'if LIFO or draining or first',
    to: 'if draining or first',
  },
  {
    what: 'jobs that are added at once stand before those that were ready already',
    file: 'redis/enqueue/enqueue-script.js',
    from: 'first <= tail or first + count',
    to: 'first + count',
    concern: 'order when the clock is set',
  },
  {
    what: 'a job that takes the place of another has no past that says when it changed',
    file: 'redis/enqueue/enqueue-script.js',
    from: "  many('HSET', HISTORY, pasts)\n",
    to: '',
  },
  {
    what: 'a running job is replaced',
    file: 'redis/enqueue/enqueue-script.js',
    from: "if j.claim then return 'p' end",
    to: '',
  },
  {
    what: 'what has come in by the same trip is not written before it is replaced',
    file: 'redis/enqueue/enqueue-script.js',
    from: 'if added[id] or #opened > 0 then write() end',
    to: '',
  },
  {
    what: 'the soonest expiry is taken for the last one that came in',
    file: 'redis/enqueue/enqueue-script.js',
    from: 'expiring_at = math.min(expiring_at, expires_at)',
    to: 'expiring_at = expires_at',
  },
]
