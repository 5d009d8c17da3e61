/** The meter: what a Postgres server on this machine and this process have spent. Linux only. */

import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'

/** The cost of an action. */
export interface PostgresSpent {
  readonly ms: number
  /** Of all processes of the server. */
  readonly serverCpuMs: number
  /** Of this process and those that it has started. */
  readonly nodeCpuMs: number
  readonly walBytes: number
}

/** The unit of times in `/proc`: a hundredth of a second. */
const tickMs = 10

export class PostgresMeter {
  readonly #url: string
  readonly #database: string
  #asking: Promise<pg.Client> | undefined

  /** Measures in the database of `url`, which `flush` makes. */
  constructor(url: string) {
    this.#url = url
    this.#database = new URL(url).pathname.slice(1)
  }

  async measured(action: () => Promise<unknown>): Promise<PostgresSpent> {
    const client = await this.#client()
    const server = await serverOf(client)
    const [walBefore, cpuBefore, childrenBefore] = [await walAt(client), cpuMsOf(server), childrenCpuMsOf(process.pid)]
    const cpu = process.cpuUsage()
    const startedAt = performance.now()
    await action()
    const ms = performance.now() - startedAt
    const { user, system } = process.cpuUsage(cpu)
    return {
      ms,
      serverCpuMs: cpuMsOf(server) - cpuBefore,
      nodeCpuMs: (user + system) / 1_000 + childrenCpuMsOf(process.pid) - childrenBefore,
      walBytes: (await walAt(client)) - walBefore,
    }
  }

  /** Makes the database anew. What the server has written before is on disk by then. */
  async flush(): Promise<void> {
    const client = await this.#client()
    await client.query(`DROP DATABASE IF EXISTS ${this.#database} WITH (FORCE)`)
    await client.query('CHECKPOINT')
    await client.query(`CREATE DATABASE ${this.#database}`)
  }

  #client(): Promise<pg.Client> {
    this.#asking ??= connected(new URL('postgres', this.#url).href)
    return this.#asking
  }
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}

async function walAt(client: pg.Client): Promise<number> {
  const { rows } = await client.query("SELECT pg_current_wal_insert_lsn() - '0/0' AS at")
  return Number((rows[0] as { at: string }).at)
}

/** The first process of the server: the parent of the one that answers. */
async function serverOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
  return statOf((rows[0] as { pid: number }).pid)!.parent
}

/** The processor time of a server, also of its processes that have ended. */
function cpuMsOf(server: number): number {
  const { ticks = 0, endedTicks = 0 } = statOf(server) ?? {}
  return tickMs * (ticks + endedTicks) + childrenCpuMsOf(server)
}

/** The processor time of the processes that this one has started and that run. */
function childrenCpuMsOf(parent: number): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const own = pids.map((pid) => statOf(Number(pid))).filter((stat) => stat?.parent === parent)
  return tickMs * own.reduce((sum, stat) => sum + stat!.ticks, 0)
}

/** Its parent, its ticks, and those of its children that have ended. Undefined: there is no such process. */
function statOf(pid: number) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const number = (at: number) => Number(fields[at])
    return { parent: number(1), ticks: number(11) + number(12), endedTicks: number(13) + number(14) }
  } catch {
    return undefined
  }
}
