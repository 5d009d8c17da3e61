/** The commands on SQS: queues are made on purpose, and workers run what lies in them. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type StrictSqs, strictSqs } from '../../stores/sqs/strict-sqs.js'
import { run, runJson } from '../command-in-process.js'
import { CommandProcess } from '../command-process.js'
import { project, projectFiles } from '../project.js'

let sqs: StrictSqs
beforeAll(async () => {
  sqs = await strictSqs()
})
afterAll(() => sqs.close())

/** A project of its own namespace. */
function sqsProject(namespace: string) {
  const config = projectFiles['millrace.config.js']!.replace('queues:', `namespace: '${namespace}',\n  queues:`)
  const cwd = project({ ...projectFiles, 'millrace.config.js': config })
  return { cwd, env: { MILLRACE_STORE: `sqs://eu-central-1?endpoint=${sqs.endpoint}` } }
}

describe('on SQS', { timeout: 60_000 }, () => {
  it('doctor reports what is missing, once each', async () => {
    const { code, stdout } = await run('doctor', sqsProject('sick'))
    expect(code).toBe(1)
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/)[0])).toEqual(['error', 'error', 'ok', ''])
  })

  it('queues list and stats show what SQS knows, and nothing about workers', async () => {
    const where = sqsProject('listed')
    await run('queues create', where)
    await runJson('enqueue echo 1 --delay 1h', where)
    const { queues } = await runJson<{ queues: { queue: string; waiting: number; stored: boolean }[] }>(
      'queues list',
      where,
    )

    expect(queues.map(({ queue, waiting, stored }) => [queue, waiting, stored])).toEqual([
      ['default', 1, true],
      ['slow', 0, true],
    ])
    expect((await run('stats', where)).stdout.split('\n')[0]).toContain(where.env.MILLRACE_STORE)
    expect(await runJson('stats', where)).not.toHaveProperty('workers')
  })

  it('queues create makes what is missing, says what, and repeats nothing', async () => {
    const where = sqsProject('made')
    const missing = await run('enqueue echo 1', where)
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('millrace queues create') })

    const first = await run('queues create', where)
    expect(first.code).toBe(0)
    expect(first.stdout).toMatch(/^queue +in the store +its dead *\n/)
    expect(first.stdout).toMatch(/\ndefault +made-default +dlq-made-default +made\n/)
    expect(first.stdout).toMatch(/\n2 queues made\.\n$/)
    expect(await runJson('queues create', where)).toEqual({
      queues: ['default', 'slow'].map((queue) => ({
        ...{ queue, name: `made-${queue}`, deadName: `dlq-made-${queue}`, wasMissing: false },
      })),
    })
    expect(await runJson('enqueue echo 1', where)).toMatchObject({ queue: 'default', outcome: 'added' })
    expect(await run('stats', where)).toMatchObject({ code: 0 })
  })

  it('other stores have nothing to create', async () => {
    const cwd = project()
    expect(await run('queues create', { cwd })).toMatchObject({
      code: 0,
      stdout: 'Nothing to do: this store makes a queue when it is first used.\n',
    })
  })

  it('a worker creates its queues with --create-queues, runs the jobs, and stops at once', async () => {
    const where = sqsProject('worked')
    const worker = new CommandProcess('work --json --create-queues', where)
    await worker.events('worker.started')
    await runJson('enqueue echo {"a":1}', where)
    await worker.events('worker.progressed')
    worker.child.kill('SIGTERM')

    expect(await worker.ended).toMatchObject({ code: 0 })
  })

  it('queues create adds the given tags, and refuses an invalid one', async () => {
    const where = sqsProject('tagged')
    expect(await run('queues create --tag team', where)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--tag must be key=value, with at most 128 and 256 characters; got 'team'"),
    })
    await run('queues create --tag team=mail --tag stage=a=b', where)
    const sdk = await import('@aws-sdk/client-sqs')
    const client = new sdk.SQSClient({
      ...{ region: 'eu-central-1', endpoint: sqs.endpoint },
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    })
    for (const QueueName of ['tagged-default', 'dlq-tagged-default']) {
      const { QueueUrl } = await client.send(new sdk.GetQueueUrlCommand({ QueueName }))
      const { Tags } = await client.send(new sdk.ListQueueTagsCommand({ QueueUrl }))
      expect(Tags).toEqual({ team: 'mail', stage: 'a=b' })
    }
    client.destroy()
  })

  it('stats shows how many calls the look has cost', async () => {
    const where = sqsProject('counted')
    await run('queues create', where)
    const { apiCalls } = await runJson<{ apiCalls: Record<string, number> }>('stats', where)
    // Of two queues: both to find them, and their dead-letter queues to count.
    expect(apiCalls).toEqual({ GetQueueUrl: 4, GetQueueAttributes: 4 })
    expect((await run('stats', where)).stdout.split('\n')[0]).toMatch(/ · 8 calls of its API to look$/)
  })

  it('morgue reads the dead-letter queues', async () => {
    const where = sqsProject('dead')
    await run('queues create', where)
    expect(await run('morgue list default', where)).toMatchObject({ code: 0, stdout: 'default: none\n' })
    expect(await runJson('morgue revive default --all', where)).toEqual({ queue: 'default', revived: 0 })
  })

  it.each([
    ['jobs list default', 'cannot'],
    ['queues pause default', 'cannot'],
    ['jobs show a', 'cannot'],
    ['workers', 'keeps no registry of workers'],
  ])('what SQS cannot do is refused in one sentence, without a stack trace: %s', async (command, said) => {
    const where = sqsProject('refused')
    await run('queues create', where)
    const { stdout, stderr } = await run(command.split(' '), where)

    expect(stderr + stdout).toContain(said)
    expect(stderr + stdout).not.toMatch(/\n\s+at /)
  })
})
