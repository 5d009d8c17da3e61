import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ProcessReport } from '#src/cli/supervise/forked-worker.js'
import { healthOf, serveHealth } from '#src/cli/supervise/health-server.js'
import { poll } from '#src/store-testing/servers/poll.js'
import { runJson } from '../command-in-process.js'
import { CommandProcess, runProcess } from '../command-process.js'
import { project } from '../project.js'

const pulse = {
  id: 'w',
  state: 'running',
  concurrency: 10,
  retired: 0,
  unsettled: 0,
  damaged: [],
  silentMs: 100,
  running: 3,
  oldest: [],
} as const
const well: ProcessReport = { pid: 17, state: 'running', upMs: 60_000, restarts: 1, heardMs: 400, pulse }

describe('health', () => {
  it.each<[string, readonly ProcessReport[]]>([
    ['there is no process', []],
    ['the first is starting', [{ pid: 17, state: 'starting', upMs: 10, restarts: 0, heardMs: 10 }]],
    [
      'all are stopping or recycling',
      [
        { ...well, state: 'stopping' },
        { ...well, state: 'recycling' },
      ],
    ],
    ['the worker has failed', [{ ...well, state: 'failed' }]],
    ['none has given a sign of life for 5 s', [{ ...well, heardMs: 5_000 }]],
    ['the store has been silent for 15 s', [{ ...well, heardMs: 2_000, pulse: { ...pulse, silentMs: 13_000 } }]],
  ])('is failing if %s', (_, processes) => {
    expect(healthOf(processes).status).toBe('failing')
  })

  it('is ok while one process claims jobs, and names no job', () => {
    const busy = { ...pulse, oldest: [{ queue: 'secret', task: 'secret', id: 'secret', forMs: 5 }] }
    const health = healthOf([
      { ...well, state: 'stopping' },
      { ...well, heardMs: 4_900, pulse: busy },
    ])
    expect(health).toMatchObject({
      status: 'ok',
      processes: [
        {},
        { pid: 17, state: 'running', restarts: 1, aliveMs: 4_900, running: 3, concurrency: 10, storeMs: 100 },
      ],
    })
    expect(JSON.stringify(health)).not.toMatch(/secret/)
  })
})

/** A connection from that address of this machine. */
async function connected(url: URL, localAddress: string): Promise<Socket> {
  const socket = connect({ port: Number(url.port), host: url.hostname, localAddress })
  onTestFinished(() => void socket.destroy())
  // It may be told to give way.
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

describe('the health server', { timeout: 30_000 }, () => {
  const health = () => healthOf([well])
  const slow = 'GET /health HTTP/1.1\r\nhost: x\r\n'

  it.each([
    ['that say nothing, from one address', () => '', () => '127.0.0.1'],
    ['that never end their request, from one address', () => slow, () => '127.0.0.1'],
    ['that say nothing, from many addresses', () => '', (i: number) => `127.0.1.${i % 100}`],
  ])('answers at once next to 200 connections %s', async (_, words, address) => {
    const url = new URL(await serveHealth('127.0.0.1', 0, health))
    const sockets: Socket[] = []
    for (let i = 0; i < 200; i += 1) {
      const socket = await connected(url, address(i))
      socket.write(words())
      sockets.push(socket)
    }
    for (let i = 0; i < 5; i += 1) {
      const askedAt = performance.now()
      expect((await fetch(url)).status).toBe(200)
      expect(performance.now() - askedAt).toBeLessThan(1_500)
    }
    // None of them stays for longer than its time.
    await Promise.all(sockets.map((socket) => socket.closed || once(socket.resume(), 'close')))
  })

  it('closes each connection, even if keep-alive is asked for', async () => {
    const url = new URL(await serveHealth('127.0.0.1', 0, health))
    const socket = await connected(url, '127.0.0.1')
    socket.write(`${slow}connection: keep-alive\r\n\r\n`)
    let said = ''
    socket.on('data', (bytes) => {
      said += String(bytes)
    })
    await once(socket, 'close')
    expect(said).toMatch(/^HTTP\/1.1 200 .*\r\nconnection: close\r\n/is)
  })
})

describe('millrace work --health-port', () => {
  it('answers 200 while jobs are claimed, 503 while the process is stopped, and 200 again', async () => {
    const command = new CommandProcess('work --json --health-port 0 --grace 1s', { cwd: project() })
    const [{ url } = {}] = await command.events('health.started')
    const health = () => fetch(url as string)
    expect((await health()).status).toBe(503)
    const [{ pids } = {}] = await command.events('processes.started')
    const [pid] = pids as [number]
    const found = await health()
    expect([found.status, found.headers.get('content-type'), found.headers.get('cache-control')]).toEqual([
      200,
      'application/json; charset=utf-8',
      'no-store',
    ])
    expect(await found.json()).toMatchObject({ status: 'ok', processes: [{ pid, state: 'running', running: 0 }] })
    onTestFinished(() => endIfAlive(pid))
    process.kill(pid, 'SIGSTOP')
    await until(health, 503)
    process.kill(pid, 'SIGCONT')
    await until(health, 200)
    command.kill('SIGTERM')
    expect(await command.end()).toMatchObject({ code: 0, stderr: '' })
  })

  it('serves two paths and two methods, and answers failing while the last jobs finish', async () => {
    const cwd = project()
    const gate = join(cwd, 'gate')
    await runJson(['enqueue', 'hold', JSON.stringify(gate)], { cwd })
    const command = new CommandProcess('work --json --health-port 0 --grace 5s', { cwd })
    const [{ url } = {}] = await command.events('health.started')
    await command.events('processes.started')
    const asked = async (path: string, method: string) => {
      const { status, headers } = await fetch(new URL(path, url as string), { method })
      return [status, headers.get('allow')]
    }
    expect(await asked('/', 'GET')).toEqual([200, null])
    expect(await asked('/health?now', 'HEAD')).toEqual([200, null])
    expect(await asked('/health', 'POST')).toEqual([405, 'GET, HEAD'])
    expect(await asked('/healthz', 'GET')).toEqual([404, null])
    await command.events('test.running')
    command.kill('SIGTERM')
    await command.events('processes.stopping')
    expect(await asked('/health', 'GET')).toEqual([503, null])
    writeFileSync(gate, '')
    expect(await command.end()).toMatchObject({ code: 0, stderr: '' })
  })

  it('exits with 1 before anything is started if another process listens on the port', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    const ended = await runProcess(['work', '--health-port', String(port)], { cwd: project() })
    taken.close()
    expect(ended).toEqual({
      code: 1,
      signal: null,
      stdout: '',
      stderr: `millrace: --health-port: cannot listen on 127.0.0.1:${port}: another process listens there. Nothing was started.\n`,
    })
  })
})

/** Asks until the answer has this status: HTTP has nothing to await. */
async function until(health: () => Promise<Response>, status: number): Promise<void> {
  const look = async () => ((await health()).status === status ? true : undefined)
  await poll(look, { what: `an answer ${status}`, withinMs: 10_000 })
}

/** A process that a failed test left stopped would stay for ever. */
function endIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
