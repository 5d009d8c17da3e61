/** An idle crowd: many connections that rest in the store's `wait`, one job, and every command the servers are given for it. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { type RedisMode, type RedisServer, startRedis } from 'millrace/store-testing'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { forkedProgram, killed } from '../forked-program.js'

export interface CrowdPlan {
  readonly mode: RedisMode
  readonly processes: number
  /** Stores of each process, with connections of their own. */
  readonly handlesEach: number
  /** Jobs, one after the other, each when all wait. */
  readonly rounds: number
}

export interface CrowdOutcome {
  readonly handles: number
  /** Commands of each round from the enqueue to the end of the settle, with both: what clients sent, and with what scripts called. */
  readonly sent: readonly number[]
  /** Of those sent, without what resting connections send every few seconds anyhow: blocking reads and subscriptions, made anew. */
  readonly caused: readonly number[]
  readonly commands: readonly number[]
  /** The names of the last round's in their order; scripts are named as clients sent them. */
  readonly last: readonly string[]
  /** From before the enqueue until the settle was answered. */
  readonly settledMs: readonly number[]
}

export const crowdQueue: QueueSettings = { name: 'crowd', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }

/** What a process of the crowd says: how many of its handles rest, or that one has settled a job. */
export type CrowdWord = { readonly resting: number } | { readonly settled: string }

interface Seen {
  readonly at: number
  readonly name: string
  readonly isInScript: boolean
  /** Whether its last word is that for a job that completed. */
  readonly isSettle: boolean
}

const renewals = new Set(['bzpopmin', 'ssubscribe'])
const withinMs = 120_000

export async function idleCrowd({ mode, processes, handlesEach, rounds }: CrowdPlan): Promise<CrowdOutcome> {
  const redis = await startRedis({ mode })
  const store = new RedisStore({ client: openRedisClient(redisAddress(redis.url)), namespace: 'crowd' })
  const children: ChildProcess[] = []
  const monitors: Socket[] = []
  try {
    await store.open([crowdQueue])
    for (let i = 0; i < processes; i += 1) children.push(startChild(redis.url, handlesEach))
    await allRest(children, processes * handlesEach)
    const seen: Seen[] = []
    for (const server of redis.servers) monitors.push(await monitor(server, seen))
    const [sent, caused, commands, settledMs]: [number[], number[], number[], number[]] = [[], [], [], []]
    let last: string[] = []
    for (let round = 0; round < rounds; round += 1) {
      await allRest(children, processes * handlesEach)
      seen.splice(0)
      const id = `job-${round}`
      const startedAt = performance.now()
      const settled = settledBy(children, id)
      const job = { id, task: 'crowd', payload: '{}', priority: 0, rememberMs: 0 }
      await store.enqueue([{ callId: id, queue: crowdQueue.name, jobs: [job] }])
      await settled
      settledMs.push(Math.round(performance.now() - startedAt))
      // All who were disturbed rest again: what they did was told.
      await allRest(children, processes * handlesEach)
      const counted = between(seen)
      const ofClients = counted.filter(({ isInScript }) => !isInScript)
      sent.push(ofClients.length)
      caused.push(ofClients.filter(({ name }) => !renewals.has(name)).length)
      commands.push(counted.length)
      last = counted.map(({ name }) => name)
    }
    return { handles: processes * handlesEach, sent, caused, commands, last, settledMs }
  } finally {
    for (const one of monitors) one.destroy()
    await Promise.all(children.map(killed))
    await store.close()
    await redis.stop()
  }
}

/** From the first script, which is the enqueue, to the last command of the settle. */
function between(seen: readonly Seen[]): Seen[] {
  const inOrder = seen.toSorted((a, b) => a.at - b.at)
  const from = inOrder.findIndex(({ name }) => name === 'evalsha' || name === 'eval')
  const settle = inOrder.findIndex(({ name, isSettle }) => name.startsWith('eval') && isSettle)
  let to = settle + 1
  while (inOrder[to]?.isInScript) to += 1
  return inOrder.slice(from, to)
}

/** Notes every command that the server is given from now on. */
async function monitor(server: RedisServer, seen: Seen[]): Promise<Socket> {
  const socket = connect(server.port, server.host)
  const lines = createInterface({ input: socket })
  socket.on('error', () => {})
  socket.write('MONITOR\r\n')
  await once(lines, 'line')
  lines.on('line', (line) => {
    const [, at, source, name, rest] = /^\+(\S+) \[\d+ ([^\]]+)\] "([^"]*)"(.*)$/.exec(line) ?? []
    if (name === undefined) return
    const isSettle = rest!.endsWith(' "c"')
    seen.push({ at: Number(at), name: name.toLowerCase(), isSettle, isInScript: source === 'lua' })
  })
  return socket
}

function startChild(url: string, handles: number): ChildProcess {
  const child = forkedProgram(join(import.meta.dirname, 'idle-crowd-worker.ts'), [url, String(handles)])
  child.setMaxListeners(0)
  return child
}

async function allRest(children: readonly ChildProcess[], handles: number): Promise<void> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const told = await Promise.all(children.map(resting))
    const all = told.reduce((sum, count) => sum + count, 0)
    if (all === handles) return
    if (performance.now() > deadline) throw new Error(`only ${all} of ${handles} handles rest`)
    await delay(50)
  }
}

function resting(child: ChildProcess): Promise<number> {
  const told = word(child, (said) => ('resting' in said ? said.resting : undefined))
  // Where it has ended, the word that is awaited says so.
  child.send('tell', () => {})
  return told
}

function settledBy(children: readonly ChildProcess[], id: string): Promise<true> {
  return Promise.race(
    children.map((child) => word(child, (said) => ('settled' in said && said.settled === id ? true : undefined))),
  )
}

/** The first word that fits; rejects where the process ends before. */
function word<T>(child: ChildProcess, fits: (said: CrowdWord) => T | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const hear = (said: CrowdWord) => {
      const found = fits(said)
      if (found === undefined) return
      done()
      resolve(found)
    }
    const lose = () => {
      done()
      reject(new Error('a process of the crowd ended'))
    }
    const done = () => child.off('message', hear).off('exit', lose)
    child.on('message', hear).on('exit', lose)
    if (child.exitCode !== null) lose()
  })
}
