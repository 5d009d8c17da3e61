import { writeFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { poll } from '#src/store-testing/servers/poll.js'
import {
  begins,
  brief,
  deadAfter,
  deaf,
  die,
  type LongProject,
  longProject,
  wait,
} from '../../end-to-end/long/long-project.js'
import { killGroup } from '../../process-group.js'
import { runJson } from '../command-in-process.js'
import { CommandProcess } from '../command-process.js'

const longest = { timeout: 60_000 }

/** A project whose jobs end with the test, however that ends. */
async function startedProject(): Promise<LongProject> {
  const of = await longProject()
  onTestFinished(() => {
    for (const { pid } of of.begun()) killGroup(pid)
  })
  return of
}

function following({ folder, env }: LongProject, id: string, ...flags: string[]) {
  return new CommandProcess(['jobs', 'show', id, '--follow', ...flags], { cwd: folder, env })
}

/** What is printed of it once it has begun and said so. */
async function begun(of: LongProject, id: string): Promise<Record<string, unknown>> {
  const follower = following(of, id)
  await follower.stdoutMatches(/startedAt|running: attempt/)
  await follower.stdoutMatches(/ {2}waits for|log: 1 line/)
  await follower.stdoutMatches(/fraction|50%/)
  follower.kill('SIGINT')
  await follower.end()
  return runJson(['jobs', 'show', id], { cwd: of.folder, env: of.env })
}

describe('jobs show of a long job', longest, () => {
  it('shows where it runs, since when, its progress, its checkpoint and its log', async () => {
    const of = await startedProject()
    of.worker()
    const job = await of.mill.enqueue(wait, of.file('go'))
    const { host, pid, worker, startedAt } = await begun(of, job.id)
    const { code, stdout } = await of.run(['jobs', 'show', job.id])

    expect(code).toBe(0)
    const lines = stdout.split('\n')
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^state {7,}running$/),
        expect.stringMatching(/^createdAt .*Z {2}(now|.* ago)$/),
        expect.stringMatching(/^startedAt .*Z {2}\d+m?s after it was due, runs for \d+m?s$/),
        expect.stringMatching(new RegExp(`^host +${host}$`)),
        expect.stringMatching(new RegExp(`^pid +${pid}$`)),
        expect.stringMatching(new RegExp(`^worker +${worker}$`)),
        expect.stringMatching(/^checkpoint {2,}\{$/),
        'log: 1 line',
        `  waits for ${of.file('go')}`,
      ]),
    )
    expect(stdout).toContain(new Date(startedAt as string).toISOString())
  })

  it('prints the last lines of its log, or all of them with --log, and escapes terminal commands', async () => {
    const of = await startedProject()
    of.worker()
    const job = await of.mill.enqueue(die, `${'line\r\n'.repeat(30)}\u001b[2J\u009b1m`)
    const logged = async () => (await job.record())?.log?.endsWith('1m\n') || undefined
    await poll(logged, { what: 'all of it is in the log', withinMs: 20_000 })
    const pid = (await job.record())!.pid!
    const [some, all] = await Promise.all([of.run(['jobs', 'show', job.id]), of.run(['jobs', 'show', job.id, '--log'])])

    expect(some.stdout).toMatch(/\nlog: 31 lines, the last 20; `--log` prints all\n( {2}.*\n){20}$/)
    expect(all.stdout.match(/^ {2}line$/gm)).toHaveLength(29)
    expect(all.stdout).toContain('  \\u001b[2J\\u009b1m\n')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
    for (const { stdout } of [some, all]) expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
    await job.cancel()
    await deadAfter(pid, 10_000)
  })
})

describe('jobs show --follow', longest, () => {
  it('prints each change and each log line once, and exits with 0 when the job has completed', async () => {
    const of = await startedProject()
    const job = await of.mill.enqueue(wait, of.file('go'))
    const follower = following(of, job.id)
    await follower.stdoutMatches(/^state +ready$/m)
    of.worker()
    await follower.stdoutMatches(/^\d\d:\d\d:\d\d running: attempt 1, on .+, pid \d+$/m)
    await follower.stdoutMatches(/^\d\d:\d\d:\d\d 50% half way$/m)
    await follower.stdoutMatches(/^ {2}waits for /m)
    writeFileSync(of.file('go'), '')
    const { code, stdout, stderr } = await follower.end()

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^\d\d:\d\d:\d\d completed after \d+m?s\n$/m)
    expect(stdout.match(/^ {2}waits for/gm)).toHaveLength(1)
    expect(stdout.match(/half way/g)).toHaveLength(1)
  })

  it('with --json prints a record per line, with only the new lines of the log', async () => {
    const of = await startedProject()
    const job = await of.mill.enqueue(wait, of.file('go'))
    const follower = following(of, job.id, '--json')
    await follower.stdoutMatches(/"ready"/)
    of.worker()
    await follower.stdoutMatches(/"log"/)
    await follower.stdoutMatches(/"fraction"/)
    writeFileSync(of.file('go'), '')
    const { code, stdout } = await follower.end()
    const records = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { state: string; log?: string })

    expect(code).toBe(0)
    expect(records.at(0)).toMatchObject({ id: job.id, state: 'ready' })
    expect(records.at(-1)).toMatchObject({ id: job.id, state: 'completed', result: { pid: expect.any(Number) } })
    expect(records.map(({ log = '' }) => log).join('')).toBe(`waits for ${of.file('go')}\n`)
  })

  it('exits with 3 at once if the job is dead, and says why it died', async () => {
    const of = await startedProject()
    of.worker()
    const job = await of.mill.enqueue(die, 'exit')
    await expect(job.result({ timeout: '20s' })).rejects.toThrow()
    const { code, stdout, stderr } = await of.run(['jobs', 'show', job.id, '--follow'])

    expect(code).toBe(3)
    expect(stdout).toMatch(/^state +dead$/m)
    expect(stderr).toMatch(/^millrace: job '.+' in queue 'long' is dead \(max-retries\): .*exited with code 0/)
  })

  it('exits with 130 on SIGINT, and the job goes on', async () => {
    const of = await startedProject()
    of.worker()
    const job = await of.mill.enqueue(brief, of.file('go'))
    const follower = following(of, job.id)
    await begins(of)
    await follower.stdoutMatches(/^state /m)
    follower.kill('SIGINT')

    expect(await follower.end()).toMatchObject({ code: 130, signal: null, stderr: '' })
    writeFileSync(of.file('go'), '')
    expect(await job.result({ timeout: '20s' })).toBe('done')
  })
})

describe('a long job that runs', longest, () => {
  it('is cancelled from the command line, which says what happens next; a follower sees the cancellation', async () => {
    const of = await startedProject()
    of.worker()
    const job = await of.mill.enqueue(deaf, false)
    const { pid } = (await begins(of))[0]!
    const follower = following(of, job.id)
    await follower.stdoutMatches(/startedAt|running: attempt 1/)
    expect(await of.run(['jobs', 'delete', 'long', job.id])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^millrace: job '\w+' runs in queue 'long' and cannot be deleted: cancel it, /),
    })
    const { code, stdout } = await of.run(['jobs', 'cancel', 'long', job.id, '--reason', 'not wanted'])

    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        /^long: 1 job cancelled\.\nlong: 1 job still runs, and learns of it at the next beat: .*SIGTERM, and is killed .*within 5s\.\n$/,
      ),
    })
    await deadAfter(pid, 10_000)
    const end = await follower.end()
    expect(end).toMatchObject({ code: 3, stderr: `millrace: job '${job.id}' in queue 'long' was cancelled.\n` })
    expect(end.stdout).toMatch(/^\d\d:\d\d:\d\d cancelled \(not wanted\)\n$/m)
  })

  it('is failed from the command line, which ends its process and says that no attempt is left', async () => {
    const of = await startedProject()
    of.worker()
    const job = await of.mill.enqueue(wait, of.file('go'))
    const { pid } = (await begins(of))[0]!
    const failed = ['jobs', 'fail', 'long', job.id, '--reason', 'it hangs', '--delay', '1h']

    expect(await of.run(failed)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^long: job .+ failed\. It is dead; to run it again: `millrace morgue revive long .+`\.\n$/,
      ),
    })
    await deadAfter(pid, 10_000)
    const { stdout } = await of.run(['jobs', 'show', job.id])
    expect(stdout).toMatch(/^state +dead\n[\s\S]*^error +it hangs$/m)
    expect(of.begun()).toHaveLength(1)
  })

  it('is dead once it is failed, even if it has a retry, and runs again only on request', async () => {
    const of = await startedProject()
    of.worker('--concurrency', '2')
    const [dead, again] = [await of.mill.enqueue(die, 'of old age'), await of.mill.enqueue(die, 'of old age')]
    for (const { id } of [dead, again])
      await poll(async () => (await of.mill.queue('long').jobs.get(id))?.startedAt, {
        what: `job ${id} has begun`,
        withinMs: 20_000,
      })

    expect(await of.run(['jobs', 'fail', 'long', dead.id])).toMatchObject({
      code: 0,
      stdout: `long: job ${dead.id} failed. It is dead; to run it again: \`millrace morgue revive long ${dead.id}\`.\n`,
    })
    expect(await of.run(['jobs', 'fail', 'long', again.id, '--no-last', '--delay', '1h'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Its attempt 2 is due in'),
    })
  })

  it('is dead once it is failed with --last', async () => {
    const of = await startedProject()
    of.worker()
    const job = await of.mill.enqueue(wait, of.file('go'))
    await begins(of)

    expect(await of.run(['jobs', 'fail', 'long', job.id, '--last'])).toMatchObject({
      code: 0,
      stdout: `long: job ${job.id} failed. It is dead; to run it again: \`millrace morgue revive long ${job.id}\`.\n`,
    })
  })
})
