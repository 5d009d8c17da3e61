/** The meter: what a Redis server reports to have spent and hold, and what this process has spent. */

import { Redis } from 'ioredis'

/** Counted since the server started. */
interface Reading {
  readonly cpuMs: number
  /** Calls by command, including those made in scripts. */
  readonly calls: ReadonlyMap<string, number>
  /** Bytes of data: the memory in use, less the buffers of connections and of the append-only file. */
  readonly bytes: number
}

/** The cost of an action. */
export interface Spent {
  readonly ms: number
  readonly redisCpuMs: number
  readonly nodeCpuMs: number
  /** Commands of all kinds, including those in scripts, without the meter's own. */
  readonly commands: number
  readonly scriptCalls: number
  /** Growth of the data in bytes. */
  readonly bytes: number
}

/**
 * An append-only file beyond this size is begun anew when the data is gone. Otherwise a long run would fill the disk.
 */
const largestFileBytes = 1 << 28

export class RedisMeter {
  readonly #redis: Redis

  constructor(url: string) {
    this.#redis = new Redis(url)
  }

  /** The cost of `action` to this process and to the server, during its run. */
  async measured(action: () => Promise<unknown>): Promise<Spent> {
    const before = reading(await this.#redis.info('all'))
    const cpu = process.cpuUsage()
    const startedAt = performance.now()
    await action()
    const ms = performance.now() - startedAt
    const { user, system } = process.cpuUsage(cpu)
    const after = reading(await this.#redis.info('all'))
    const calls = (name: string) => (after.calls.get(name) ?? 0) - (before.calls.get(name) ?? 0)
    let commands = -1
    for (const name of after.calls.keys()) commands += calls(name)
    return {
      ms,
      redisCpuMs: after.cpuMs - before.cpuMs,
      nodeCpuMs: (user + system) / 1_000,
      commands,
      scriptCalls: calls('evalsha') + calls('eval'),
      bytes: after.bytes - before.bytes,
    }
  }

  /** The processor time that the server has taken, in ms. */
  async cpuMs(): Promise<number> {
    return reading(await this.#redis.info('cpu')).cpuMs
  }

  /** Removes all data. */
  async flush(): Promise<void> {
    await this.#redis.flushall('SYNC')
    const { aof_current_size: size } = fields(await this.#redis.info('persistence'))
    if (Number(size) > largestFileBytes) await this.#rewrite()
  }

  async #rewrite(): Promise<void> {
    await this.#redis.bgrewriteaof()
    while (fields(await this.#redis.info('persistence'))['aof_rewrite_in_progress'] === '1');
  }

  async close(): Promise<void> {
    await this.#redis.quit()
  }
}

function reading(text: string): Reading {
  const info = fields(text)
  const calls = new Map<string, number>()
  for (const [name, value] of Object.entries(info)) {
    if (name.startsWith('cmdstat_')) calls.set(name.slice('cmdstat_'.length), Number(/calls=(\d+)/.exec(value)?.[1]))
  }
  const number = (name: string) => Number(info[name] ?? 0)
  return {
    cpuMs: 1_000 * (number('used_cpu_user') + number('used_cpu_sys')),
    calls,
    bytes: number('used_memory') - number('mem_clients_normal') - number('mem_aof_buffer'),
  }
}

/** The lines `name:value` of an answer to INFO. */
function fields(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split('\r\n').flatMap((line) => {
      const at = line.indexOf(':')
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)]]
    }),
  )
}
