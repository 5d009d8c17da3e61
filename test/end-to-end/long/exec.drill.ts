import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineTask, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { poll } from '#src/store-testing/servers/poll.js'
import { CommandProcess } from '../../cli/command-process.js'
import { project } from '../../cli/project.js'
import { livingIn } from '../../process-group.js'
import { deadAfter } from './long-project.js'

const config = `
import { millrace } from 'millrace'
export default millrace({ store: process.env['MILLRACE_STORE'], queues: { video: { lease: '3s' } } })
`
const attached = `
import { millrace } from 'millrace'
const mill = millrace({ store: process.env['MILLRACE_STORE'], queues: { video: { lease: '3s' } } })
const claim = await mill.listener('video').attach(process.env['MILLRACE_TOKEN'])
claim.progress(0.5)
await claim.complete(claim.input)
await mill.close()
`
/** `exec` takes any task name. */
const tasksElsewhere = ['a', 'b', 'c', 'd']
const render = defineTask({ name: 'render', queue: 'video' })

function scene() {
  const folder = project({ 'millrace.config.js': config, 'package.json': '{"type":"module"}' })
  const store = `sqlite:${join(folder, 'jobs.db')}`
  const mill = millrace({ store, queues: { video: { lease: '3s' } }, tasks: [render], tasksElsewhere })
  onTestFinished(() => mill.close())
  return {
    folder,
    mill,
    exec: (flags: string[], ...command: string[]) =>
      new CommandProcess(['exec', 'video', '--json', ...flags, '--', ...command], {
        cwd: folder,
        env: { MILLRACE_STORE: store },
      }),
    record: (id: string) => mill.queue('video').jobs.get(id),
  }
}

describe('exec', { timeout: 60_000 }, () => {
  it('pipes the input into a pipeline, and stores its output as the result', async () => {
    const { exec, mill } = scene()
    exec(
      [],
      'sh',
      '-c',
      'tr a-z A-Z | sed "s/$/ by $MILLRACE_QUEUE $MILLRACE_TASK $MILLRACE_JOB_ID $MILLRACE_ATTEMPT/"',
    )
    const job = await mill.enqueue(render, { name: 'ada' }, { id: 'one' })

    expect(await job.result({ timeout: '20s' })).toBe('{"NAME":"ADA"} by video render one 1\n')
  })

  it('passes a token, with which the command can continue the claim itself', async () => {
    const { folder, exec, mill, record } = scene()
    writeFileSync(join(folder, 'attached.mjs'), attached)
    exec([], 'node', 'attached.mjs')
    const job = await mill.enqueue(render, { frames: 3 }, { id: 'one' })

    expect(await job.result({ timeout: '20s' })).toEqual({ frames: 3 })
    expect(await record('one')).toMatchObject({ state: 'completed', attempt: 1, progress: { fraction: 0.5 } })
  })

  it('runs at most `--concurrency` jobs at once, each in its own slot, whatever their tasks', async () => {
    const { folder, exec, mill } = scene()
    exec(['--concurrency', '3'], 'sh', '-c', `echo $MILLRACE_SLOT >> begun; while [ ! -e go ]; do sleep 0.05; done`)
    const jobs = await Promise.all(
      tasksElsewhere.map((name) => mill.enqueue(defineTask({ name, queue: 'video' }), null)),
    )
    const begun = () => readFileSync(join(folder, 'begun'), 'utf8').trim().split('\n')
    await poll(async () => (begun().length === 3 ? true : undefined), { what: 'three have begun', withinMs: 20_000 })
    expect(begun().sort()).toEqual(['0', '1', '2'])
    expect((await mill.depths(['video']))[0]).toMatchObject({ running: 3, ready: 1 })
    writeFileSync(join(folder, 'go'), '')

    for (const job of jobs) expect(await job.result({ timeout: '20s' })).toBe('')
  })

  it('fails the job if the command fails, finally unless retries are left', async () => {
    const { exec, mill, record } = scene()
    exec(['--retries', '0'], 'sh', '-c', 'echo out; echo "no such film" >&2; exit 7')
    const job = await mill.enqueue(render, null)

    await expect(job.result({ timeout: '20s' })).rejects.toThrow(
      /is dead \(no-retries\): ProcessDiedError: 'sh' exited with code 7\..*\nno such film/,
    )
    expect((await record(job.id))?.log?.split('\n').sort()).toEqual(['', 'no such film', 'out'])
  })

  it('fails the job with a clear error if the command does not exist', async () => {
    const { exec, mill } = scene()
    exec([], 'no-such-command')
    const job = await mill.enqueue(render, null)
    await expect(job.result({ timeout: '20s' })).rejects.toThrow(/spawn no-such-command ENOENT/)
  })

  it('keeps the last 64 KiB of 10 MB of output, in the result and in the log', async () => {
    const { exec, mill, record } = scene()
    exec([], 'sh', '-c', 'head -c 10000000 /dev/zero | tr "\\0" x; printf "½end"')
    const job = await mill.enqueue(render, null)
    const result = (await job.result({ timeout: '30s' })) as string

    expect([Buffer.byteLength(result), result.endsWith('x½end')]).toEqual([65_536, true])
    const log = (await record(job.id))!.log!
    expect([Buffer.byteLength(log), log.endsWith('x½end')]).toEqual([65_536, true])
  })

  it('passes 200 KB of input, and the command need not read it', async () => {
    const { exec, mill } = scene()
    exec(['--concurrency', '2'], 'sh', '-c', 'test "$MILLRACE_JOB_ID" = deaf || wc -c')
    const film = 'ä'.repeat(100_000)
    const read = await mill.enqueue(render, film)
    const unread = await mill.enqueue(render, film, { id: 'deaf' })

    expect(Number(await read.result({ timeout: '20s' }))).toBe(200_003)
    expect(await unread.result({ timeout: '20s' })).toBe('')
  })

  it('ends a command that ignores SIGTERM, with all its children, soon after a cancel', async () => {
    const { exec, mill, record } = scene()
    exec([], 'sh', '-c', "trap '' TERM; sleep 600 & sleep 600")
    const job = await mill.enqueue(render, null)
    const pid = await poll(async () => (await record(job.id))?.pid, { what: 'it runs', withinMs: 20_000 })
    await poll(async () => (livingIn(pid).length >= 4 ? true : undefined), { what: 'all run', withinMs: 20_000 })
    await job.cancel()

    expect(await deadAfter(pid, 10_000)).toBeLessThan(1_000 + 5_000 + 1_000)
    expect(await job.status()).toBe('cancelled')
  })

  it('ends a command that exceeds its time limit', async () => {
    const { exec, mill } = scene()
    exec(['--time-limit', '500ms'], 'sleep', '600')
    const job = await mill.enqueue(render, null)
    await expect(job.result({ timeout: '20s' })).rejects.toThrow(/ran longer than its time limit of 500ms/)
  })

  it('leaves the command running when it is stopped or killed, and the next exec adopts it', async () => {
    const { folder, exec, mill, record } = scene()
    const command = ['sh', '-c', 'while [ ! -e go ]; do sleep 0.05; done; echo $MILLRACE_ATTEMPT'] as const
    const first = exec([], ...command)
    const job = await mill.enqueue(render, null)
    const pid = await poll(async () => (await record(job.id))?.pid, { what: 'it runs', withinMs: 20_000 })
    first.kill('SIGTERM')
    expect((await first.end()).code).toBe(0)
    const second = exec([], ...command)
    expect(await second.events('job.adopted')).toMatchObject([{ id: job.id, child: pid }])
    second.kill('SIGKILL')
    await second.end()
    await exec([], ...command).events('job.adopted')
    writeFileSync(join(folder, 'go'), '')

    expect(await job.result({ timeout: '20s' })).toBe('1\n')
  })
})
