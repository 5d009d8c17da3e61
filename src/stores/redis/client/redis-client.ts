/**
 * The Redis client: all that the Redis store needs of a connection. It connects to a single server, to the master that
 * Sentinels name, or to a cluster; tests wrap it.
 */

import type { RedisScript } from './redis-script.js'

/** Text is sent as UTF-8. */
export type RedisArgument = string | Uint8Array

/** A reply as the server sent it: bulk strings and status replies as bytes, integers as numbers, nil as null. */
export type RedisReply = Buffer | number | string | null | readonly RedisReply[]

/** A script with its keys and arguments. */
export interface RedisScriptCall {
  readonly script: RedisScript
  readonly keys: readonly string[]
  readonly args: readonly RedisArgument[]
}

/** The result of a pop behind which a script call was sent. */
export interface PoppedMarker {
  /** Absent: there was no marker. */
  readonly key?: string
  /** Absent: the script failed or was not run. The next call of it says why. */
  readonly reply?: RedisReply
}

export interface RedisClient {
  /**
   * On a cluster, keys with different tags may be on different servers, and no command can block on several of them.
   */
  readonly isCluster: boolean
  /**
   * Runs a script on the server that holds `keys`; all must have the same tag. Sends the script's text if the server
   * does not know it. Calls made in one tick to one server are sent in one write and executed in that order. Exceptions
   * are calls that the server cannot execute at once, because it is loading or does not know the script: they are tried
   * again for up to 2 s. `replicas`: then waits up to 1 s until this many replicas have it.
   *
   * Throws `StoreUnavailableError` (in doubt, or the server cannot be reached or written to), `StoreFullError` (not
   * executed: no memory), `StoreCorruptError` (a key of another type), `StoreRefusedError` (a password or a right),
   * `ConfigError` (the server is unfit for a store), `ScriptRefusal` (the script returned
   * `redis.error_reply('MILLRACE <word>')`), `ClosedError`.
   */
  run(
    script: RedisScript,
    keys: readonly string[],
    args: readonly RedisArgument[],
    replicas?: number,
  ): Promise<RedisReply>
  /** Runs one plain command on the server that holds its first key. It is sent, and throws, as with `run`. */
  command(name: string, args: readonly RedisArgument[]): Promise<RedisReply>
  /**
   * Pops the marker of the first of these sorted sets that has one. Waits up to `forMs` for it, on its own connection.
   * Returns the key, or undefined if there was none or `signal` aborts; a marker popped during the abort is put back.
   * One call at a time. Not on a cluster. Throws as `run` does; gives up a silent server 2 s after `forMs`.
   */
  pop(keys: readonly string[], forMs: number, signal: AbortSignal): Promise<string | undefined>
  /**
   * Like `pop`, for at most 5 s, with a script call that the server runs as soon as the pop ends, however it ends. Both
   * travel together. After an abort the script may have run all the same. Throws as `run` does if the reply was lost, or
   * neither could be sent.
   */
  popAndRun(keys: readonly string[], forMs: number, signal: AbortSignal, call: RedisScriptCall): Promise<PoppedMarker>
  /**
   * Listens to the channel, a sharded one on a cluster. Resolves when it listens, with the function that stops it.
   * After a lost connection it listens again by itself, and calls `heard` once with `undefined` for lost messages.
   */
  listen(channel: string, heard: (message: string | undefined) => void): Promise<() => void>
  /** Resolves when the server was reached and found fit. Throws as `run` does. */
  reach(): Promise<void>
  /** Rejects running calls with `ClosedError` and disconnects. May be called twice. */
  close(): Promise<void>
}
