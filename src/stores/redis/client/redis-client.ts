/**
 * The Redis client: the few things that the Redis store asks of one. Behind it stands the connection to a single
 * server, to the master that Sentinels name, or to a cluster; in tests it is wrapped by a harness.
 */

import type { RedisScript } from './redis-script.js'

/** Text goes as UTF-8. */
export type RedisArgument = string | Uint8Array

/** As the server sent it: bulk strings and status replies as bytes, integers as numbers, nil as null. */
export type RedisReply = Buffer | number | string | null | readonly RedisReply[]

export interface RedisClient {
  /** Keys of different tags lie on different servers, and nothing can block on more than one of them. */
  readonly isCluster: boolean
  /**
   * Runs a script on the server that holds `keys`; all must have the same tag. Whether the server knew the script does not
   * show. What is run in one tick on one server travels in one write and is carried out in that order, save for what the
   * server could not do at once (it is loading, it does not know the script): that is tried again for up to 2 s.
   * `replicas`: afterwards waits up to 1 s until so many replicas have it.
   *
   * Throws `StoreUnavailableError` (in doubt, or the server cannot be reached or written to), `StoreFullError` (not
   * carried out: no memory), `StoreCorruptError` (a key of another type), `StoreRefusedError` (a password or a right),
   * `ConfigError` (no store can live on this server), `ScriptRefusal` (what the script returned by
   * `redis.error_reply('MILLRACE <word>')`), `ClosedError`.
   */
  run(
    script: RedisScript,
    keys: readonly string[],
    args: readonly RedisArgument[],
    replicas?: number,
  ): Promise<RedisReply>
  /** One plain command on the server that holds its first key. Travels and throws as `run` does. */
  command(name: string, args: readonly RedisArgument[]): Promise<RedisReply>
  /**
   * Pops the marker of the first of these sorted sets that holds one, waiting up to `forMs` for it, on a connection of its
   * own; answers with the key, or undefined when there was none or `signal` aborts. A marker popped while aborting is put
   * back. One call at a time. Not on a cluster. Throws as `run` does; a silent server is given up 2 s after `forMs`.
   */
  pop(keys: readonly string[], forMs: number, signal: AbortSignal): Promise<string | undefined>
  /**
   * Hears what is published on the channel, sharded where the server is a cluster; resolves when it is listening, with
   * what stops it. After a lost connection it listens again by itself and calls `heard` once with `undefined`, for what
   * was missed.
   */
  listen(channel: string, heard: (message: string | undefined) => void): Promise<() => void>
  /** Resolves when the server was reached and found fit. Throws as `run` does. */
  reach(): Promise<void>
  /** Rejects what is under way with `ClosedError` and disconnects. Closing twice is harmless. */
  close(): Promise<void>
}
