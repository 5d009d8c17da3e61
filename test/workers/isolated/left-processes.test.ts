/** A worker that stops just as the process of an isolated job has settled it: that end is told and counted once. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { defineTask } from 'millrace'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type EventMap, Events } from '#src/core/events.js'
import { Registry } from '#src/core/registry.js'
import type { AnySingleTask } from '#src/core/task/task.js'
import { JobExecution } from '#src/runtime/run/execution.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import type { ChildMessage } from '#src/workers/isolated/child-messages.js'
import { WorkerLine } from '#src/workers/isolated/child-messages.js'
import { ProcessPool } from '#src/workers/isolated/process-pool.js'
import { project, root } from '../../cli/project.js'
import { givenSurroundings } from '../../runtime/given-surroundings.js'
import { notesOn } from '../../runtime/updates-on.js'
import { testMill } from '../../test-mill.js'

/** Says these messages, and goes on until the file `end` is there: what hears of the end, or the store, may take its time. */
const entryThatSays = (...messages: readonly ChildMessage[]) => `
import { existsSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'

const file = (name) => new URL(name, import.meta.url)
const line = new Socket({ fd: 3, readable: true, writable: true })
for (const message of ${JSON.stringify(messages)}) line.write(JSON.stringify(message) + '\\n')
setTimeout(() => writeFileSync(file('said'), ''), 200)
setInterval(() => {
  if (existsSync(file('end'))) process.exit(0)
}, 20)
`
const settled: ChildMessage = { kind: 'settled', verdict: { kind: 'complete', answer: 'ok', runMs: 1 } }

/** Starts a process with 0, 1, 2 … descriptors left, and says how often that was refused; nothing else may happen. */
const spawns = `
import { closeSync, openSync } from 'node:fs'
import { IsolatedProcess } from '${root}/dist/workers/isolated/child-process.js'

const settings = {
  ...{ entry: new URL('end.js', import.meta.url), assignment: { leaseMs: 1_000 }, env: [], variables: {} },
  heard: () => {},
}
async function startedWith(left) {
  const taken = []
  try {
    for (;;) taken.push(openSync('/dev/null'))
  } catch {}
  for (const fd of taken.splice(0, left)) closeSync(fd)
  const started = await IsolatedProcess.start(settings).catch(() => undefined)
  for (const fd of taken) closeSync(fd)
  await started?.ended
  return started !== undefined
}
// What is loaded later needs descriptors too.
await startedWith(30)
const refused = []
for (let left = 0; left < 16; left += 1) if (!(await startedWith(left))) refused.push(left)
process.stdout.write('refused ' + refused.length)
`

const claim = {
  ...{ queue: 'default', id: 'a', task: 'long', payload: '', priority: 0, attempt: 1, crashes: 0, fence: 1 },
  ...{ createdAt: 0, runAt: 0 },
}

/** A pool whose processes keep their leases, and say this of their jobs. */
function poolOf(task: AnySingleTask, said = settled) {
  const entry = entryThatSays({ kind: 'keeping' }, said)
  const folder = project({ 'package.json': '{"type":"module"}', 'entry.js': entry })
  const [told, events]: [string[], Events] = [[], new Events()]
  const pool = new ProcessPool(
    givenSurroundings({ events, mono: () => performance.now() }),
    new Registry([task], [...testMill({ tasks: [task] }).queues.values()]),
    new MemoryStore(),
    '',
    { entry: pathToFileURL(join(folder, 'entry.js')), from: undefined },
    {
      handedOver: () => {},
      reported: (_, { kind }) => told.push(kind),
      decided: () => told.push('decided'),
      lost: () => told.push('lost'),
      released: () => told.push('released'),
    },
  )
  return { pool, folder, told, events, execution: () => new JobExecution(claim, task, undefined, {}, notesOn()) }
}

describe('a process pool', { timeout: 30_000 }, () => {
  it('does not leave a process that has reported the end of its job, but passes the report on', async () => {
    const of = poolOf(defineTask({ name: 'long', isolate: 'process', timeLimit: '1h' }))
    const execution = of.execution()
    const ran = of.pool.run(execution)
    await expect.poll(() => existsSync(join(of.folder, 'said')), { timeout: 20_000 }).toBe(true)
    const isLeft = of.pool.leave(execution)
    writeFileSync(join(of.folder, 'end'), '')
    await ran

    expect([isLeft, ...of.told]).toEqual([false, 'complete', 'released'])
  })

  it('leaves a process that still settles its job when a stop is over, and kills one without a verdict', async () => {
    const decided = poolOf(defineTask({ name: 'long', isolate: 'process' }), { kind: 'decided' })
    const started = poolOf(defineTask({ name: 'long', isolate: 'process' }), { kind: 'started' })
    const ends = [decided, started].map(async (of) => {
      const execution = of.execution()
      const ran = of.pool.run(execution)
      await expect.poll(() => existsSync(join(of.folder, 'said')), { timeout: 20_000 }).toBe(true)
      of.pool.stop(execution)
      await expect.poll(() => of.told).toContain('released')
      return ran
    })
    await ends[1]
    writeFileSync(join(decided.folder, 'end'), '')
    await ends[0]

    expect(decided.told).toEqual(['released'])
    expect(started.told).toEqual(['decided', 'released'])
  })

  it('puts a job back whose process cannot be started, and keeps no timer and no pipe of it', async () => {
    const of = poolOf(defineTask({ name: 'long', isolate: 'process', env: [] }))
    const { execPath } = process
    const held = () =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout' || kind === 'PipeWrap').length
    const before = held()
    process.execPath = join(of.folder, 'no-node')
    await of.pool.run(of.execution()).finally(() => {
      process.execPath = execPath
    })
    // Node closes the pipes that it had made in its next turns.
    await expect.poll(held).toBeLessThanOrEqual(before)

    expect(of.told).toEqual(['decided', 'released'])
  })

  it('lives on when no descriptors are left for a process', async () => {
    const folder = project({ 'package.json': '{"type":"module"}', 'spawns.js': spawns, 'end.js': '' })
    const limited = spawn('sh', ['-c', `ulimit -n 90; exec ${process.execPath} ${join(folder, 'spawns.js')}`])
    const [printed, complained] = await Promise.all([text(limited.stdout), text(limited.stderr), once(limited, 'exit')])

    expect([printed, complained]).toEqual([expect.stringMatching(/^refused [1-9]\d*$/), ''])
  })

  it('names the variables that a task does not get, once and without their values, unless the task says what it needs', async () => {
    vi.stubEnv('DATABASE_URL', 'a secret')
    onTestFinished(() => void vi.unstubAllEnvs())
    const told: EventMap['env.withheld'][] = []
    for (const env of [undefined, ['PGHOST'], []]) {
      const { pool, folder, events, execution } = poolOf(defineTask({ name: 'long', isolate: 'process', env }))
      events.on('env.withheld', (event) => told.push(event))
      writeFileSync(join(folder, 'end'), '')
      for (let runs = 0; runs < 2; runs++) await pool.run(execution())
    }

    expect(told).toEqual([{ task: 'long', queue: 'default', names: expect.arrayContaining(['DATABASE_URL']) }])
    expect(JSON.stringify(told)).not.toContain('a secret')
  })
})

describe('the line from a process to its worker', () => {
  /** The line, and the end of the worker. */
  async function pair(): Promise<{ line: WorkerLine; worker: Socket }> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const accepted = once(server, 'connection') as Promise<[Socket]>
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    const [worker] = await accepted
    onTestFinished(() => {
      for (const end of [socket, worker]) end.destroy()
      server.close()
    })
    return { line: new WorkerLine(socket, () => {}), worker }
  }

  it('reports the end of the job as unread if the worker left without reading it', async () => {
    const { line, worker } = await pair()
    worker.pause()
    const isHeard = line.tell(settled)
    // What is said behind it is written behind it.
    expect(await line.tell({ kind: 'started' })).toBe(true)
    worker.destroy()

    expect(await isHeard).toBe(false)
  })

  it('reports it as read once the worker says so, even if that leaves at once', async () => {
    const { line, worker } = await pair()
    worker.once('data', () => worker.end('{"kind":"heard"}\n'))

    expect(await line.tell(settled)).toBe(true)
  })
})
