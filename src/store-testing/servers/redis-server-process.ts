/**
 * A Redis server process: one real server on a port of its own, with its data in a directory of its own. It can be
 * killed, stopped for a while and started again. It ends with the process that started it.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, loopback } from './free-port.js'
import { GuardedProcess } from './guarded-process.js'
import type { MachineProgram } from './machine-program.js'
import { redisServerBinary } from './redis-server-binary.js'
import { askOnce, type RespReply } from './resp-client.js'

export interface RedisServerOptions {
  /** Lines of redis.conf, such as `'appendonly yes'`, `'maxmemory 3mb'`. Default: nothing is written to disk. */
  readonly config?: readonly string[]
}

interface ServerLaunch extends RedisServerOptions {
  readonly isSentinel?: boolean
  /** Whether it needs a second port, for the bus of a cluster. */
  readonly isClustered?: boolean
}

const configFile = 'redis.conf'
/** A server prints the first once it has loaded its data, a Sentinel the second; both accept connections by then. */
const ready = /Ready to accept connections|Sentinel ID is/
const portTaken = /Address already in use|Failed listening on port/
/** Commands of a quarter of an hour are loaded again on a busy machine. */
const startWithinMs = 60_000
const mostPortRaces = 5
const endings: ReadonlySet<NodeJS.Signals> = new Set<NodeJS.Signals>(['SIGKILL', 'SIGTERM', 'SIGINT'])

export class RedisServer {
  readonly host = loopback
  /** Itself alone; the other modes of `startRedis` have several. */
  readonly servers: readonly RedisServer[] = [this]
  readonly port: number
  /** The port at which other nodes of a cluster reach it; undefined outside a cluster. */
  readonly busPort: number | undefined
  /** Its working directory: configuration, append-only files, snapshots. */
  readonly directory: string
  readonly #binary: MachineProgram
  readonly #args: readonly string[]
  #process: GuardedProcess | undefined
  #stopped: Promise<void> | undefined

  private constructor(binary: MachineProgram, directory: string, ports: readonly number[], args: readonly string[]) {
    this.#binary = binary
    this.directory = directory
    this.port = ports[0]!
    this.busPort = ports[1]
    this.#args = args
  }

  /**
   * Starts a server; resolves when it answers.
   *
   * Throws `RedisServerMissingError`, or an error with the server's output if it does not start.
   */
  static async start({
    config = [],
    isSentinel = false,
    isClustered = false,
  }: ServerLaunch = {}): Promise<RedisServer> {
    const binary = await redisServerBinary()
    for (let races = 0; ; races++) {
      const directory = await mkdtemp(join(tmpdir(), 'millrace-redis-'))
      const port = await freePort()
      const busPort = isClustered ? await freePort() : undefined
      const lines = [
        ...(isSentinel ? [] : ['save ""']),
        ...config,
        // These come last, and the last line counts: without them the server could not be followed.
        `port ${port}`,
        ...(busPort === undefined ? [] : ['cluster-enabled yes', `cluster-port ${busPort}`]),
        `bind ${loopback}`,
        `dir "${directory}"`,
        'daemonize no',
        'logfile ""',
        'loglevel notice',
      ]
      await writeFile(join(directory, configFile), `${lines.join('\n')}\n`)
      const args = [configFile, ...(isSentinel ? ['--sentinel'] : [])]
      const ports = busPort === undefined ? [port] : [port, busPort]
      const server = new RedisServer(binary, directory, ports, args)
      try {
        await server.#launch()
        return server
      } catch (error) {
        const hasLostRace = portTaken.test(server.#process?.output ?? '')
        await server.stop()
        if (!hasLostRace || races === mostPortRaces) throw error
      }
    }
  }

  get url(): string {
    return `redis://${this.host}:${this.port}`
  }

  /** The pid of the running process, or of the last one. */
  get pid(): number {
    return this.#process!.pid
  }

  get isRunning(): boolean {
    return this.#process!.isRunning
  }

  /** One command on a connection of its own. Throws `RespError`, or the connection's error. */
  ask(...args: readonly (string | number)[]): Promise<RespReply> {
    return askOnce(this.port, ...args)
  }

  /** Sends the signal, by default SIGKILL. Resolves when the process has ended, if the signal ends it. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGINT' | 'SIGSTOP' | 'SIGCONT' = 'SIGKILL'): Promise<void> {
    this.#process!.kill(signal)
    if (endings.has(signal)) await this.#process!.ended
  }

  /**
   * Starts it again on the same port and with its data on disk; resolves when it has loaded the data and answers. A
   * running process is killed first. Throws the server's output if it does not start, and throws after `stop`.
   */
  async restart(): Promise<void> {
    await this.kill()
    await this.#launch()
  }

  /** Kills it and removes its data. Stopping twice is harmless. */
  stop(): Promise<void> {
    this.#stopped ??= this.kill().then(() => rm(this.directory, { recursive: true, force: true, maxRetries: 3 }))
    return this.#stopped
  }

  async #launch(): Promise<void> {
    if (this.#stopped !== undefined) throw new Error(`the server of port ${this.port} was stopped and its data removed`)
    const { path, env } = this.#binary
    this.#process = new GuardedProcess({ path, env, args: this.#args, directory: this.directory })
    await this.#process.said(ready, startWithinMs)
    await this.ask('PING').catch((error: Error) => {
      // A server that asks for a password has answered.
      if (!error.message.startsWith('NOAUTH')) throw error
    })
  }
}

/** Starts several servers at once: all of them, or none if one does not start. */
export async function startServers(launches: readonly ServerLaunch[]): Promise<RedisServer[]> {
  const started = await Promise.allSettled(launches.map((launch) => RedisServer.start(launch)))
  const servers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const failed = started.find((one) => one.status === 'rejected')
  if (failed === undefined) return servers
  await stopServers(servers)
  throw failed.reason
}

export async function stopServers(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()))
}
