/** Replies of scripts, read as the types that the caller expects. */

import type { RedisReply } from './redis-client.js'

export function listIn(reply: RedisReply | undefined): readonly RedisReply[] {
  return reply as readonly RedisReply[]
}

export function bytesIn(reply: RedisReply | undefined): Buffer {
  return reply as Buffer
}

/** Bulk strings come as bytes, status replies as text. */
export function textIn(reply: RedisReply | undefined): string {
  return typeof reply === 'string' ? reply : (reply as Buffer).toString()
}

export function numberIn(reply: RedisReply | undefined): number {
  return typeof reply === 'number' ? reply : Number(textIn(reply))
}

/**
 * A walk in steps: each reply begins with the cursor of the next, which is '0' at first and at the end. Yields what else
 * the replies hold.
 */
export async function* walkOf(
  read: (cursor: string) => Promise<RedisReply>,
): AsyncGenerator<readonly RedisReply[], void, undefined> {
  let cursor = '0'
  do {
    const [next, ...held] = listIn(await read(cursor))
    cursor = textIn(next)
    yield held
  } while (cursor !== '0')
}

/** Cuts a flat list into rows of `width` elements. */
export function rowsIn(reply: RedisReply | undefined, width: number): (readonly RedisReply[])[] {
  const flat = listIn(reply)
  return Array.from({ length: flat.length / width }, (_, i) => flat.slice(i * width, (i + 1) * width))
}
