/** A Blueque server: the Redis in which Blueque keeps its queues. It is only read, never written. */

import type { Redis } from 'ioredis'
import { messageOf } from '../../../core/messages/describe.js'
import { redisAddress } from '../../../stores/redis/client/redis-address.js'
import { redisClients } from '../../../stores/redis/client/redis-connection-options.js'
import { OperationError } from '../../process/exit-code.js'

/** A task as Blueque stores it. */
export interface BluequeTask {
  readonly id: string
  /** The fields of its record; undefined if there is none. */
  readonly record: Readonly<Record<string, string>> | undefined
  /** The due time of a scheduled task, in seconds since 1970. */
  readonly eta?: number
}

/** Tasks that are counted but not read. */
export interface BluequeCounts {
  readonly reserved: number
  readonly started: number
  readonly failed: number
  readonly complete: number
}

/** The number of tasks read in one trip. */
const perTrip = 500

export class BluequeServer {
  readonly #client: Redis

  private constructor(client: Redis) {
    this.#client = client
  }

  /**
   * Connects. Rejects with `ConfigError` for an invalid address, and with `OperationError` if the server does not
   * answer.
   */
  static async reached(url: string): Promise<BluequeServer> {
    const clients = await redisClients(redisAddress(url))
    const client = clients.main() as Redis
    let last: unknown
    // Without a listener each attempt to reconnect would be printed.
    client.on('error', (error) => {
      last = error
    })
    try {
      await client.connect()
      await client.call('PING')
    } catch (error) {
      client.disconnect()
      throw new OperationError(`${clients.where} cannot be read: ${messageOf(last ?? error)}`)
    }
    return new BluequeServer(client)
  }

  close(): void {
    this.#client.disconnect()
  }

  /** By name. */
  async queues(): Promise<string[]> {
    return (await this.#list('ZRANGE', 'blueque_queues', '0', '-1')).toSorted()
  }

  async counts(queue: string): Promise<BluequeCounts> {
    const [started, complete, failed, reserved] = await Promise.all([
      this.#startedIds(queue),
      this.#read('LLEN', `blueque_complete_tasks_${queue}`),
      this.#read('LLEN', `blueque_failed_tasks_${queue}`),
      this.#reservedIds(queue),
    ])
    return {
      reserved: reserved.filter((id) => !started.has(id)).length,
      started: started.size,
      failed: Number(failed),
      complete: Number(complete),
    }
  }

  /** In the order in which Blueque takes them. */
  pending(queue: string): AsyncGenerator<BluequeTask[]> {
    return this.#ofList(`blueque_pending_tasks_${queue}`)
  }

  /** The oldest failure first. */
  failed(queue: string): AsyncGenerator<BluequeTask[]> {
    return this.#ofList(`blueque_failed_tasks_${queue}`)
  }

  /** The earliest due time first. */
  async *scheduled(queue: string): AsyncGenerator<BluequeTask[]> {
    for (let at = 0; ; at += perTrip) {
      const flat = await this.#list(
        'ZRANGE',
        `blueque_scheduled_tasks_${queue}`,
        String(at),
        String(at + perTrip - 1),
        'WITHSCORES',
      )
      if (flat.length === 0) return
      const etas = new Map(flat.flatMap((id, i) => (i % 2 === 0 ? [[id, Number(flat[i + 1])] as const] : [])))
      const tasks = await this.#tasks([...etas.keys()])
      yield tasks.map((task) => ({ ...task, eta: etas.get(task.id)! }))
    }
  }

  /** Tasks that a listener has taken and no process has begun. */
  async *reserved(queue: string): AsyncGenerator<BluequeTask[]> {
    const ids = await this.#reservedIds(queue)
    for (let at = 0; at < ids.length; at += perTrip) {
      const tasks = await this.#tasks(ids.slice(at, at + perTrip))
      // A list of the queue `a_b` looks like one of a listener of `a`, and a started task stays in its list.
      yield tasks.filter(({ record }) => record?.['queue'] === queue && record['status'] !== 'started')
    }
  }

  /** From the end of the list: Blueque takes the next task there, and adds new ones at the beginning. */
  async *#ofList(key: string): AsyncGenerator<BluequeTask[]> {
    for (let at = 1; ; at += perTrip) {
      const ids = await this.#list('LRANGE', key, String(-(at + perTrip - 1)), String(-at))
      if (ids.length === 0) return
      yield await this.#tasks(ids.toReversed())
    }
  }

  /** Each member of the set is `listener pid task`. */
  async #startedIds(queue: string): Promise<Set<string>> {
    const members = await this.#list('SMEMBERS', `blueque_started_tasks_${queue}`)
    return new Set(members.map((member) => member.slice(member.lastIndexOf(' ') + 1)))
  }

  async #reservedIds(queue: string): Promise<string[]> {
    const ids: string[] = []
    const pattern = `blueque_reserved_tasks_${queue.replace(/[[\]*?\\]/g, '\\$&')}_*`
    for (let cursor = '0'; ; ) {
      const [next, keys] = (await this.#client.call('SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000')) as [
        string,
        string[],
      ]
      for (const key of keys) ids.push(...(await this.#list('LRANGE', key, '0', '-1')).toReversed())
      if (next === '0') return [...new Set(ids)]
      cursor = next
    }
  }

  #tasks(ids: readonly string[]): Promise<BluequeTask[]> {
    return Promise.all(
      ids.map(async (id) => {
        const flat = await this.#list('HGETALL', `blueque_task_${id}`)
        const fields = flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1]!] as const] : []))
        return { id, record: fields.length === 0 ? undefined : Object.fromEntries(fields) }
      }),
    )
  }

  async #list(command: string, key: string, ...args: string[]): Promise<readonly string[]> {
    return (await this.#read(command, key, ...args)) as string[]
  }

  /** Rejects with `OperationError` that names the key: other programs may have keys of these names. */
  async #read(command: string, key: string, ...args: string[]): Promise<unknown> {
    try {
      return await this.#client.call(command, key, ...args)
    } catch (error) {
      const message = messageOf(error)
      throw new OperationError(
        message.startsWith('WRONGTYPE')
          ? `key '${key}' is not of the type that Blueque gives it (${command} refuses it): another program has written it. Nothing of its queue was read from there on.`
          : `key '${key}' could not be read by ${command}: ${message}`,
      )
    }
  }
}
