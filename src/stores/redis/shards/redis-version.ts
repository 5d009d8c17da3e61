/**
 * The version of a namespace's layout: the forms of all its keys together. It is written with the first queue, so that an
 * older Millrace refuses what it would misread.
 */

import { StoreVersionError } from '../../../core/errors.js'
import type { RedisClient } from '../client/redis-client.js'
import { textIn } from '../client/redis-reply.js'
import { versionKey } from '../redis-keys.js'

/** Raised with each change of the keys or of their values that a process of the version before would misread. */
const layoutVersion = 1

const field = 'layout'

/** Writes the version unless there is one. */
export async function keepVersion(client: RedisClient, namespace: string): Promise<void> {
  await client.command('HSETNX', [versionKey(namespace), field, String(layoutVersion)])
}

/** Throws `StoreVersionError` if a newer version of Millrace has made the namespace. One without a version is of the first. */
export async function refuseNewer(client: RedisClient, namespace: string): Promise<void> {
  const stored = await client.command('HGET', [versionKey(namespace), field])
  if (stored === null || Number(textIn(stored)) <= layoutVersion) return
  throw new StoreVersionError(
    `the Redis store of the namespace '${namespace}' has layout ${textIn(stored)}; this Millrace knows layouts up to ${layoutVersion}. Nothing was written to it. Update Millrace.`,
  )
}
