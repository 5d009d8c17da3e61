import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Mill, millrace, type QueueListener } from 'millrace'
import { faultProxy, startRedis } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CommandProcess } from '../../cli/command-process.js'
import { project, root } from '../../cli/project.js'
import { recorded } from '../../next-event.js'
import { enqueue, jobOf, listenerOn, video } from './listener-scene.js'

const script = join(root, 'node_modules/jiti/lib/jiti-cli.mjs')
const queues = { video: { lease: '3s' } } as const

/** Takes a job, or goes on with one; works for as long as it is told, until it is asked, or until its claim is lost. */
const program = `
import { setTimeout as sleep } from 'node:timers/promises'
import { millrace } from 'millrace'

const [forMs, token] = process.argv.slice(2)
const mill = millrace({ store: process.env['STORE']!, queues: { video: { lease: '3s' } } })
const listener = mill.listener('video')
const claim = token === undefined ? await listener.next() : await listener.attach(token)
await claim.started()
console.log(JSON.stringify({ event: 'test.has', id: claim.id, token: claim.token }))
const asked = new AbortController()
process.stdin.once('data', () => asked.abort())
await sleep(Number(forMs), undefined, { signal: AbortSignal.any([claim.signal, asked.signal]) }).catch(() => {})
console.log(JSON.stringify({ event: 'test.settled', answer: await claim.complete({ by: process.pid }) }))
process.stdin.destroy()
await mill.close()
`

async function sqlite(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return `sqlite:${join(folder, 'jobs.db')}`
}

async function redis(): Promise<string> {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  return server.url
}

function millOn(store: string): Mill {
  const mill = millrace({ store, queues, tasks: [video] })
  onTestFinished(() => mill.close())
  return mill
}

/** How long after the enqueue of each of so many jobs, one after the other, an idle listener had it. */
async function pickUps(mill: Mill, listener: QueueListener, count: number): Promise<number[]> {
  const took: number[] = []
  for (let i = 0; i < count; i += 1) {
    const next = listener.next()
    const from = performance.now()
    await enqueue(mill, i)
    const claim = await next
    took.push(performance.now() - from)
    await claim.complete()
  }
  return took.sort((a, b) => a - b)
}

describe.each([
  ['SQLite', sqlite],
  ['Redis', redis],
])('a listener on %s', { timeout: 60_000 }, (_, started) => {
  async function scene() {
    const store = await started()
    const mill = millOn(store)
    const cwd = project({ 'program.ts': program })
    const process = async (...args: string[]) => {
      const one = new CommandProcess(['program.ts', ...args], { cwd, script, env: { STORE: store }, moreInput: true })
      const [has] = (await one.events('test.has')) as [{ id: string; token: string }]
      return { one, pid: one.child.pid!, ...has }
    }
    return { mill, process }
  }

  it('can be killed, and its job continues in another process that has attached, once and with its lease', async () => {
    const { mill, process } = await scene()
    await enqueue(mill, { file: 'a' }, { id: 'a' })
    const first = await process('3600000')
    const second = await process('5000', first.token)
    first.one.kill('SIGKILL')
    await first.one.ended
    const crashed = recorded(mill, 'job.crashed')
    const given: string[] = []
    const leaving = new AbortController()
    const third = listenerOn(mill)
      .next({ signal: leaving.signal })
      .then(
        ({ id }) => given.push(id),
        () => {},
      )
    const { stdout, stderr } = await second.one.ended

    expect(stderr).toBe('')
    expect(stdout).toContain('"answer":"ok"')
    expect(await jobOf(mill, 'a')).toMatchObject({
      state: 'completed',
      result: { by: second.pid },
      attempt: 1,
      crashes: 0,
    })
    leaving.abort()
    await third
    expect([given, crashed]).toEqual([[], []])
  })

  it('gets the job of a killed process within its lease and 5 s, even if another one had attached', async () => {
    const { mill, process } = await scene()
    await enqueue(mill, { file: 'a' }, { id: 'a' })
    const first = await process('3600000')
    const second = await process('3600000', first.token)
    const third = listenerOn(mill).next()
    const from = performance.now()
    second.one.kill('SIGKILL')
    expect(await third).toMatchObject({ id: 'a', attempt: 1, crashes: 0 })
    expect(performance.now() - from).toBeLessThan(8_000)
    // It hears that its claim is lost, unless it had noticed before that another process had it: then it is told nothing.
    first.one.child.stdin!.write('\n')
    const [settled] = await first.one.events('test.settled')
    expect(settled).toMatchObject({ answer: 'lost' })
  })

  it('gets a new job within 50 ms when it is idle', async () => {
    const { mill } = await scene()
    const took = await pickUps(mill, listenerOn(mill), 40)
    expect(took[20]).toBeLessThan(50)
    expect(took[35]).toBeLessThan(200)
  })
})

describe('a listener whose connection is cut', { timeout: 60_000 }, () => {
  it('gets new jobs soon, and the next ones within 50 ms again', async () => {
    const { port } = new URL(await redis())
    const proxy = await faultProxy({ port: Number(port) })
    onTestFinished(() => proxy.close())
    const direct = millOn(`redis://127.0.0.1:${port}`)
    const listener = listenerOn(millOn(proxy.url))
    await pickUps(direct, listener, 2)
    const waiting = listener.next()
    proxy.cut()
    const from = performance.now()
    await enqueue(direct, 'while it is cut')
    await (await waiting).complete()
    expect(performance.now() - from).toBeLessThan(5_000)

    const took = await pickUps(direct, listener, 20)
    expect(took[10]).toBeLessThan(50)
    expect(took[17]).toBeLessThan(200)
  })
})
