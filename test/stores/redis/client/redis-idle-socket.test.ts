/** A connection on which nothing is awaited keeps no process alive; whoever awaits something is waited for. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type RedisServer, startRedis } from 'millrace/store-testing'
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** Runs the program, which closes nothing, until it ends by itself. `at` is called with each of its lines. */
async function ended(
  program: string,
  at: (line: string) => unknown = () => {},
  { url }: { readonly url: string } = server,
) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', `${prelude(url)}${program}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text
    for (const line of text.trim().split('\n')) at(line)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text
  })
  const [code, signal] = await once(child, 'close')
  return { code, signal, ...output }
}

function prelude(url: string): string {
  return `
    import { setTimeout as delay } from 'node:timers/promises'
    import { defineTask, millrace } from ${JSON.stringify(import.meta.resolve('millrace'))}
    const task = defineTask({ name: 'greet', run: async (name) => 'hello ' + name })
    const watched = defineTask({ name: 'watched', queue: 'watched', run: async () => {} })
    const mill = millrace({ store: ${JSON.stringify(url)}, tasks: [task, watched] })
  `
}

function endsWith(stdout: string) {
  return { code: 0, signal: null, stdout, stderr: '' }
}

it.each([
  ['that has enqueued', "await mill.enqueue(task, 'Ada'); console.log('enqueued')", 'enqueued\n'],
  [
    'that does not await its enqueue, when it is accepted',
    "mill.enqueue(task, 'Ada', { id: 'not awaited' }).then(({ id }) => console.log(id))",
    'not awaited\n',
  ],
  [
    'that polls without waiting',
    `await mill.enqueue(task, 'Ada')
    setInterval(() => mill.depths().catch(() => {}), 200).unref()`,
    '',
  ],
  [
    'that waits for a result, when it has it',
    `const job = await mill.enqueue(task, 'Ada', { delay: '2s' })
    const worker = mill.worker()
    await worker.start()
    console.log(await job.result())
    await worker.stop()`,
    'hello Ada\n',
  ],
  [
    'that watches a queue, after its watch',
    `const feed = mill.queue('watched').events()
    await feed.ready()
    const worker = mill.worker()
    setTimeout(async () => {
      await mill.enqueue(watched, 'Ada')
      await worker.start()
    }, 1_700).unref()
    for await (const { type } of feed) if (type === 'job.completed') break
    console.log('heard')
    await worker.stop()`,
    'heard\n',
  ],
])('a program exits by itself: one %s', async (_, program, printed) => {
  expect(await ended(program)).toEqual(endsWith(printed))
})

it('a program that found its server through Sentinels exits by itself too', async () => {
  const sentinels = await startRedis({ mode: 'sentinel' })
  onTestFinished(() => sentinels.stop())

  expect(await ended("await mill.enqueue(task, 'Ada')", undefined, sentinels)).toEqual(endsWith(''))
})

it('a late answer is awaited, also by a connection that was released before', async () => {
  const program = `
    await mill.enqueue(task, 'Ada')
    await delay(1_700)
    console.log('pause')
    await delay(300)
    await mill.enqueue(task, 'Ada')
    console.log('enqueued')
  `
  const outcome = await ended(program, (line) => line === 'pause' && server.ask('CLIENT', 'PAUSE', 2_000))

  expect(outcome).toEqual(endsWith('pause\nenqueued\n'))
})

it('after a server outage a program exits once the server is back', async () => {
  const program = `
    await mill.enqueue(task, 'Ada')
    console.log('enqueued')
    await delay(1_700)
    console.log('over')
  `
  const outcome = await ended(program, async (line) => {
    if (line === 'enqueued') await server.kill()
    if (line === 'over') await server.restart()
  })

  expect(outcome).toMatchObject({ code: 0, signal: null, stdout: 'enqueued\nover\n' })
})
