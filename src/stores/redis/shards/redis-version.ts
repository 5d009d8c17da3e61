/**
 * The version of a namespace's layout: the forms of all its keys together. It is written with the first queue. An older
 * Millrace refuses what it would misread, and a newer one brings what is older up to date.
 */

import { StoreVersionError } from '../../../core/errors.js'
import type { RedisClient } from '../client/redis-client.js'
import { rowsIn, textIn } from '../client/redis-reply.js'
import { redisScript } from '../client/redis-script.js'
import { queuesKey, versionKey } from '../redis-keys.js'
import { layoutOf, queueIn, type RedisQueue } from '../redis-layout.js'

/**
 * One step of a change of the layout. Resolves to whether more is to do. Any number of processes take steps at the same
 * time, and where one dies the others go on: so what a step writes is atomic, and it finds nothing to do where the change
 * is made. A step is bounded, because the server does nothing else meanwhile.
 */
export type LayoutChange = (
  client: RedisClient,
  namespace: string,
  queues: readonly RedisQueue[],
) => Promise<{ readonly more: boolean }>

/** The changes from each version to the next, the first from 1 to 2. One is made whenever an older build would misread. */
const layoutChanges: readonly LayoutChange[] = []

const versionAfter = (changes: readonly LayoutChange[]) => changes.length + 1

const field = 'layout'

/** KEYS: the version of a namespace. ARGV: its field, a version. Raises it to this one, never lowers it. Returns nothing. */
const raiseScript = redisScript(
  'raise-layout',
  `
if tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 1) < tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
`,
)

/** Writes the version unless there is one. */
export async function keepVersion(client: RedisClient, namespace: string): Promise<void> {
  await client.command('HSETNX', [versionKey(namespace), field, String(versionAfter(layoutChanges))])
}

/**
 * Makes what has changed since the namespace was written, version by version. One without a version is of the first.
 * Throws `StoreVersionError` if a newer version of Millrace has made it; then nothing was written.
 */
export async function bringUpToDate(
  client: RedisClient,
  namespace: string,
  changes: readonly LayoutChange[] = layoutChanges,
): Promise<void> {
  const stored = await client.command('HGET', [versionKey(namespace), field])
  const [version, known] = [stored === null ? 1 : Number(textIn(stored)), versionAfter(changes)]
  if (version > known)
    throw new StoreVersionError(
      `the Redis store of the namespace '${namespace}' has layout ${version}; this Millrace knows layouts up to ${known}. Nothing was written to it. Update Millrace.`,
    )
  for (const [i, change] of changes.slice(version - 1).entries()) {
    const queues = await storedQueues(client, namespace)
    while ((await change(client, namespace, queues)).more);
    await client.run(raiseScript, [versionKey(namespace)], [field, String(version + i + 1)])
  }
}

async function storedQueues(client: RedisClient, namespace: string): Promise<RedisQueue[]> {
  const rows = rowsIn(await client.command('HGETALL', [queuesKey(namespace)]), 2)
  return rows.map(([name, layout]) => queueIn(namespace, textIn(name), layoutOf(textIn(name), textIn(layout))))
}
