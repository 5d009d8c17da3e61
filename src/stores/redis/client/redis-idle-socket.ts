/**
 * The idle socket: a connection without an outstanding command keeps no process alive. While the server is away, the
 * timer by which ioredis tries again does. A listener on a channel that must keep the process alive has its own timer.
 */

import type { Redis } from 'ioredis'

/** How often it looks. A socket that is idle at two looks in a row is let go. */
const lookMs = 500

export class RedisIdleSocket {
  readonly #timer: NodeJS.Timeout
  /** The socket that was idle at the last look, and whether it is let go. */
  #idle: Redis['stream'] | undefined
  #isLetGo = false

  constructor(client: Redis) {
    this.#timer = setInterval(() => this.#look(client), lookMs).unref()
  }

  /** Keeps the process alive until the answer has come. Call it before every command. */
  hold(): void {
    if (!this.#isLetGo) return
    this.#idle!.ref?.()
    this.#isLetGo = false
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look({ stream, commandQueue }: Redis): void {
    const isIdle = stream !== undefined && commandQueue.length === 0
    if (isIdle && this.#idle === stream) {
      // A connector of the user may give a stream that has neither.
      stream.unref?.()
      this.#isLetGo = true
    } else {
      this.hold()
      this.#idle = isIdle ? stream : undefined
    }
  }
}
