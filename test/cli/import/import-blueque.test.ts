import { Redis } from 'ioredis'
import { startRedis } from 'millrace/store-testing'
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { run } from '../command-in-process.js'
import { runProcess } from '../command-process.js'
import { project } from '../project.js'

const config = `import { defineTask, millrace } from 'millrace'
export const video = defineTask({ name: 'encode', queue: 'video', run: async () => {} })
export default millrace({ store: 'sqlite:jobs.db', tasks: [video] })
`
const listener = 'node-1_42'

let url: string
let blueque: Redis
beforeAll(async () => {
  ;({ url } = await startRedis())
})

/** As Blueque's client and listeners leave them. */
async function task(queue: string, id: string, status: string, parameters: string): Promise<void> {
  await blueque.hset(`blueque_task_${id}`, {
    status,
    queue,
    parameters,
    created: '1700000000.5',
    updated: '1700000000.5',
  })
  await blueque.zincrby('blueque_queues', 0, queue)
  const put = {
    pending: () => blueque.lpush(`blueque_pending_tasks_${queue}`, id),
    scheduled: () => blueque.zadd(`blueque_scheduled_tasks_${queue}`, 4_102_444_800.5, id),
    reserved: () => blueque.lpush(`blueque_reserved_tasks_${queue}_${listener}`, id),
    async started() {
      await blueque.lpush(`blueque_reserved_tasks_${queue}_${listener}`, id)
      await blueque.sadd(`blueque_started_tasks_${queue}`, `${listener} 4242 ${id}`)
    },
    failed: () => blueque.lpush(`blueque_failed_tasks_${queue}`, id),
    complete: () => blueque.lpush(`blueque_complete_tasks_${queue}`, id),
  }[status]!
  await put()
}

beforeEach(async () => {
  blueque = new Redis(url, { db: 3 })
  onTestFinished(() => blueque.disconnect())
  await blueque.flushdb()
})

const imported = (...args: string[]) => run(['import', 'blueque', `${url}/3`, ...args], { cwd: project({}) })
const linesOf = (stdout: string) => stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))

describe('millrace import blueque', { timeout: 60_000 }, () => {
  it.each([
    ['blueque_queues', 'ZRANGE'],
    ['blueque_pending_tasks_video', 'LRANGE'],
    ['blueque_complete_tasks_video', 'LLEN'],
    ['blueque_task_a', 'HGETALL'],
  ])('names a key that another program has written, without a stack trace: %s', async (key, command) => {
    await task('video', 'a', 'pending', '{}')
    await blueque.set(key, 'something else')
    const { code, stderr } = await imported()

    expect(code).toBe(1)
    expect(stderr).toContain(`millrace: key '${key}' is not of the type that Blueque gives it (${command} refuses it)`)
    expect(stderr).not.toMatch(/WRONGTYPE|\n\s+at /)
  })

  it('prints the waiting tasks in the order in which Blueque would run them, and reports what it left out', async () => {
    for (const [id, parameters] of [
      ['a', '{"file":"a.mov"}'],
      ['b', '[1,"two"]'],
    ] as const)
      await task('video', id, 'pending', parameters)
    await task('video', 'later', 'scheduled', '"at the end of the century"')
    for (const status of ['reserved', 'started', 'failed', 'complete']) await task('video', status, status, '1')
    const { code, stdout, stderr } = await imported('--task', 'encode')

    const header = { task: 'encode', queue: 'video' }
    expect(linesOf(stdout)).toEqual([
      { ...header, id: 'a', state: 'ready', input: { file: 'a.mov' } },
      { ...header, id: 'b', state: 'ready', input: [1, 'two'] },
      {
        ...{ ...header, id: 'later', state: 'scheduled', runAt: '2100-01-01T00:00:00.500Z' },
        input: 'at the end of the century',
      },
    ])
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: 'video: printed 2 pending, 1 scheduled; left 1 reserved, 1 started, 1 failed, 1 complete\n',
    })
  })

  it('prints pending tasks, and failed ones on request', async () => {
    for (const status of ['reserved', 'started', 'failed']) await task('video', status, status, '1')
    // A queue whose name makes its lists look like those of a listener.
    await task('video_2', 'other', 'reserved', '1')
    const { stdout, stderr } = await imported('--queue', 'video', '--reserved', '--failed')

    expect(linesOf(stdout).map(({ id }) => id)).toEqual(['reserved', 'failed'])
    expect(stderr).toBe('video: printed 0 pending, 0 scheduled, 1 reserved, 1 failed; left 1 started, 0 complete\n')
  })

  it('prints lines that `enqueue - --envelope` accepts, and running both twice adds nothing twice', async () => {
    for (let i = 0; i < 1_200; i += 1) await task('video', `task-${i}`, 'pending', JSON.stringify({ i }))
    const { stdout } = await imported('--task', 'encode')
    const cwd = project({ 'millrace.config.js': config })
    const enqueue = async () =>
      JSON.parse((await runProcess(['enqueue', '-', '--envelope', '--json'], { cwd, input: stdout })).stdout)

    expect(await enqueue()).toMatchObject({ added: 1_200, duplicate: 0 })
    expect(await enqueue()).toMatchObject({ added: 0, duplicate: 1_200 })
    const { stdout: first } = await runProcess(['jobs', 'list', 'video', '--envelope'], { cwd })
    expect(linesOf(first).map(({ id }) => id)).toEqual(linesOf(stdout).map(({ id }) => id))
  })

  it('takes parameters that are not JSON as text if --text is given, else reports them without showing them', async () => {
    await task('video', 'a', 'pending', 'secret.mov')
    await blueque.lpush('blueque_pending_tasks_video', 'gone')
    const refused = await imported()
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain(
      "video: left out: task 'a': its parameters are no JSON; --text takes them as they are",
    )
    expect(refused.stderr).toContain("task 'gone' has no record")
    expect(refused.stderr).not.toContain('secret')

    expect(linesOf((await imported('--text')).stdout)).toEqual([
      { task: 'video', queue: 'video', id: 'a', state: 'ready', input: 'secret.mov' },
    ])
  })

  it('renames a queue, and leaves out a queue with an invalid name', async () => {
    await task('my video', 'a', 'pending', '1')
    expect(await imported()).toMatchObject({
      ...{ code: 1, stdout: '' },
      stderr: expect.stringMatching(/^my video: left out, .*--queue 'my video' --to another/),
    })
    const { stdout } = await imported('--queue', 'my video', '--to', 'video')
    expect(linesOf(stdout)).toMatchObject([{ queue: 'video', task: 'video', id: 'a' }])
  })

  it("changes nothing in Blueque's Redis", async () => {
    for (const status of ['pending', 'scheduled', 'reserved', 'started', 'failed', 'complete'])
      await task('video', status, status, '1')
    const dump = async () => {
      const keys = (await blueque.keys('*')).sort()
      return Promise.all(keys.map(async (key) => [key, (await blueque.dumpBuffer(key))!.toString('hex')]))
    }
    const before = await dump()
    await imported('--reserved', '--failed')

    expect(await dump()).toEqual(before)
  })

  it.each([
    [[], 2, /^millrace: expected the address of its Redis/],
    [['redis://127.0.0.1:1'], 1, /^millrace: .*127\.0\.0\.1:1.* cannot be read: .*ECONNREFUSED/],
    [['redis://127.0.0.1:1', '--to', 'video'], 2, /--to is for one queue: give --queue too/],
    [['redis://127.0.0.1:1', '--task', ''], 2, /--task must be/],
  ])('%j is refused', async (args, code, message) => {
    expect(await runProcess(['import', 'blueque', ...args], { cwd: project({}) })).toMatchObject({
      ...{ code, stdout: '' },
      stderr: expect.stringMatching(message),
    })
  })
})
