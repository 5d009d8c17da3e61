/** The mutations of how the Redis store merges the payloads of an id. */

import type { Mutation } from './mutants.js'

export const redisMergeMutations: readonly Mutation[] = [
  {
    what: 'of equal payloads that are pushed the maximal score stays',
    file: 'redis/enqueue/enqueue-ordered-script.js',
    from: 'if equal and not is_before(value, equal) then return end',
    to: 'if equal and is_before(value, equal) then return end',
  },
  {
    what: 'of equal payloads that are pushed the maximal score stays in the record',
    file: 'redis/enqueue/enqueue-ordered-script.js',
    from: 'is_before(value, before)',
    to: 'is_before(before, value)',
  },
  {
    what: 'a second payload takes the place of the first',
    file: 'redis/enqueue/enqueue-ordered-script.js',
    from: '    add(id, sub(rec, from, from + 21), before)\n',
    to: '',
  },
  {
    what: 'of merge latest the first stays in the record',
    file: 'redis/enqueue/enqueue-ordered-script.js',
    from: 'if is_first == is_equal then',
    to: 'if is_first then',
  },
  {
    what: 'of equal payloads that come back the maximal score stays',
    file: 'redis/lua/payloads-lua.js',
    from: 'if not equal or is_before(value, equal) then',
    to: 'if not equal or is_before(equal, value) then',
  },
  {
    what: 'of equal payloads with the same score the latest stays',
    file: 'redis/lua/payloads-lua.js',
    from: 'return c < z',
    to: 'return c > z',
  },
  {
    what: 'an equal payload with another meta is another payload',
    file: 'redis/format/redis-payload.js',
    from: 'digestOf(payloadContent(job))',
    to: 'digestOf(payloadContent(job) + String(meta))',
  },
  {
    what: 'text and bytes that say the same are equal',
    file: 'rules/payloads.js',
    from: '\\0b`), payload]',
    to: '\\0t`), payload]',
  },
  {
    what: 'equal payloads are one whatever the rule',
    file: 'redis/enqueue/enqueue-ordered-script.js',
    from: 'DISTINCT and 1 or 23',
    to: '1',
  },
  {
    what: 'merge distinct keeps all',
    file: 'redis/enqueue/enqueue-ordered-script.js',
    from: 'DISTINCT and 1 or 23',
    to: '23',
  },
  {
    what: 'payloads of one score are one whatever they say',
    file: 'redis/format/redis-payload.js',
    from: 'digestOf(payloadContent(job))',
    to: "digestOf('')",
  },
  {
    what: 'equal payloads of one call are one if they have no score',
    file: 'redis/enqueue/redis-enqueue.js',
    from: 'place: places?.[i] ?? i',
    to: 'place: 0',
  },
  {
    what: 'equal payloads at the same place of two calls are one if they have no score',
    file: 'redis/enqueue/redis-enqueue.js',
    from: 'callId: wholeCallId,',
    to: "callId: '',",
  },
  {
    what: 'an equal payload with the same given score is another one',
    file: 'rules/payloads.js',
    from: 'score === undefined ?',
    to: 'true ?',
  },
  {
    what: 'a call sent again to a shard that forgot it adds its payloads again',
    file: 'redis/enqueue/redis-enqueue.js',
    from: 'place: places?.[i] ?? i',
    to: 'place: i',
    concern: 'equal payloads in an ordered queue',
  },
  {
    what: 'scores below 0 do not stand in their order',
    file: 'redis/lua/payloads-lua.js',
    from: 'for i = 1, 8 do b[i] = 255 - b[i] end',
    to: '',
  },
  {
    what: 'payloads of one call arrive with one stamp',
    file: 'redis/enqueue/enqueue-ordered-script.js',
    from: '  stamp = next_stamp(stamp)\n  came = true',
    to: '  if not came then stamp = next_stamp(stamp) end\n  came = true',
  },
  {
    what: 'the time of a job is the default score of its payload',
    file: 'redis/enqueue/enqueue-ordered-script.js',
    from: 'last_score = math.max(stamp, last_score + 1)',
    to: 'last_score = math.max(own_stamp, last_score + 1)',
  },
  {
    what: 'of merge latest the first stays',
    file: 'redis/lua/payloads-lua.js',
    from: '  members[#members] = nil\n',
    to: '  table.remove(members, 1)\n',
  },
  {
    what: 'merge latest keeps all',
    file: 'redis/lua/payloads-lua.js',
    from: '  if LATEST then keep_last(set, bodies, id) end\n',
    to: '',
  },
  {
    what: 'a payload that waits already needs room again',
    file: 'redis/enqueue/enqueue-ordered-script.js',
    from: 'return not equal_at(field, id)',
    to: 'return true',
  },
  {
    what: 'a merge into the latest needs room',
    file: 'redis/enqueue/enqueue-ordered-script.js',
    from: "if LATEST then return not there[id] or there[id] == 'u' end",
    to: 'if LATEST then return true end',
  },
]
