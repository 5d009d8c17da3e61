/** The scripts for both kinds of queues, each pair under one name. */

import type { QueueKind } from '../../contract/queue-settings.js'
import type { RedisArgument, RedisClient, RedisReply } from '../client/redis-client.js'
import { refuse, type ScriptFlags, type ShardScript } from '../client/redis-script.js'
import type { RedisShard } from '../redis-layout.js'
import { withOrderedJobs } from './ordered-lua.js'
import { shardScript, withJobs } from './prelude.js'
import { readyJobs } from './ready-lua.js'

/** A script for each kind of queue. */
export type ScriptPair = Readonly<Record<QueueKind, ShardScript>>

/** A text for both kinds of queues, or one for each. */
export type KindText = string | Readonly<Record<QueueKind, string>>

interface PairOptions extends ScriptFlags {
  /** Functions that most calls do not need. They are made lazily, together with those that change jobs. */
  readonly rare?: KindText
}

/** The scripts `name` and `name-ordered`: this text after the functions for jobs. */
export function scriptPair(name: string, text: KindText, { rare = '', ...flags }: PairOptions = {}): ScriptPair {
  return {
    plain: shardScript(name, 'plain', () => withJobs(textFor('plain', text), textFor('plain', rare)), flags),
    ordered: shardScript(
      `${name}-ordered`,
      'ordered',
      () => withOrderedJobs(textFor('ordered', text), textFor('ordered', rare)),
      flags,
    ),
  }
}

/** Begins the text of a script: refuses `unknown`, and reads the form of the queue. */
export const guard = `
if call('EXISTS', META) == 0 then ${refuse('unknown')} end
know_form()
`

/** Scripts that only read, with the functions for ready jobs. They refuse `unknown`. */
export function readerPair(name: string, text: KindText): ScriptPair {
  const guarded = { plain: guard + textFor('plain', text), ordered: guard + textFor('ordered', text) }
  return scriptPair(name, guarded, { rare: readyJobs, readOnly: true })
}

/** The script for shards of this kind. */
export function scriptFor(kind: QueueKind, given: ShardScript | ScriptPair): ShardScript {
  return typeof given === 'function' ? given : given[kind]
}

/** Runs the script for the shard's kind on it, whether or not the shard exists. */
export function runOn(
  client: RedisClient,
  { kind, keys }: RedisShard,
  given: ShardScript | ScriptPair,
  args: readonly RedisArgument[] = [],
): Promise<RedisReply> {
  return client.run(scriptFor(kind, given)(client.isCluster), keys, args)
}

function textFor(kind: QueueKind, text: KindText): string {
  return typeof text === 'string' ? text : text[kind]
}
