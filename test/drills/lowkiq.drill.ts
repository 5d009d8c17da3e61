import { cpSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CommandProcess, type Ended, runProcess, runProcessJson } from '../cli/command-process.js'
import { project, root } from '../cli/project.js'

const script = join(root, 'node_modules/jiti/lib/jiti-cli.mjs')
const migration = ['--config', 'migration/millrace.config.ts']

interface Stored {
  readonly queue: string
  readonly payloads: { readonly input: unknown; readonly score: number }[]
  readonly [field: string]: unknown
}

/** A folder with the example, and what is done there. */
function example() {
  const cwd = project({})
  cpSync(join(root, 'examples/lowkiq'), cwd, { recursive: true })
  symlinkSync(join(root, 'node_modules/zod'), join(cwd, 'node_modules/zod'))
  const succeeds = async (ended: Promise<Ended>) => {
    const { code, stdout, stderr } = await ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }
  return {
    cwd,
    program: (...args: string[]) => succeeds(runProcess(args, { cwd, script })),
    command: (...args: string[]) => succeeds(runProcess(args, { cwd })),
    /** Worker processes say what they do on stdout and stderr, until they are told to stop. */
    worker: (...args: string[]) => new CommandProcess(['work', ...args], { cwd }),
    job: (id: string, queue: string, ...more: string[]) =>
      runProcessJson<Stored>(['jobs', 'show', queue, id, ...more], { cwd }),
  }
}

async function stopped(worker: CommandProcess): Promise<void> {
  worker.kill('SIGTERM')
  expect(await worker.end()).toMatchObject({ code: 0 })
}

describe("Lowkiq's example", { timeout: 60_000 }, () => {
  it('enqueues as in its README, runs in batches by id, and logs every run and enqueue', async () => {
    const { cwd, program, command, worker } = example()
    expect((await program('enqueue.ts')).split('\n').sort()).toEqual([
      '',
      ...Array.from({ length: 3 }, () => 'Enqueued 1 job for ATestWorker'),
      ...Array.from({ length: 3 }, () => 'Enqueueing 1 job for ATestWorker'),
    ])
    const working = worker()
    for (const [id, payload] of [
      [0, '""'],
      [1, '{"attr":"v1"}'],
      [2, '{"attr":"v1"}'],
    ] as const) {
      const batch = `ATestWorker \\[.*\\["${id}",\\[${payload}\\]\\].*\\]`
      await working.stdoutMatches(new RegExp(`Started job for ${batch}\n(?:.*\n)*some work for ${id}: ${payload}\n`))
      await working.stdoutMatches(new RegExp(`Finished job for ${batch}\n`))
    }
    expect(await program('enqueue-thousand.ts')).toBe(
      'Enqueueing 1000 jobs for AnIdWorker\nEnqueued 1000 jobs for AnIdWorker\n',
    )
    await command('queues', 'drain', 'AnIdWorker')
    const { totals, queues } = await runProcessJson<{ totals: object; queues: { queue: string }[] }>(['stats'], { cwd })
    expect(totals).toMatchObject({ processed: 1_003, failed: 0, running: 0, dead: 0 })
    expect(queues.map(({ queue }) => queue)).toEqual(['ATestWorker', 'AnIdWorker'])
    const { input: said } = await working.stdoutMatches(/(?:some work for \d+: 1\n(?:(?!some work).*\n)*){1000}/)
    const ids = [...said.matchAll(/some work for (\d+): 1\n/g)].map(([, id]) => Number(id))
    expect(ids.sort((a, b) => a - b)).toEqual(Array.from({ length: 1_000 }, (_, id) => id))
    await stopped(working)
  })

  it('retries a failing payload after 10, 20, 30, 40 and 50 seconds, then buries and logs it', async () => {
    const { cwd, command, worker } = example()
    const working = worker()
    await command('enqueue', 'ATestWorker', '{"attr":"fails"}', '--id', '3')
    for (let failures = 1; failures <= 5; failures += 1) {
      await working.stdoutMatches(new RegExp(`failed .*, attempt ${failures}, again in ${failures}0 ?s`))
      await command('jobs', 'run-now', 'ATestWorker', '3')
    }
    await working.stdoutMatches(/retries exhausted for 3 of ATestWorker with error it fails, as it was told to\n/)
    const { input: told } = await working.stderrMatches(/(?:it fails, as it was told to ATestWorker .*\n){6}/)
    expect(told).toMatch(/^it fails, as it was told to ATestWorker \[\["3",\[\{"attr":"fails"\}\]\]\]\n/)
    const { queues } = await runProcessJson<{ queues: { jobs: Stored[] }[] }>(['morgue', 'list', 'ATestWorker'], {
      cwd,
    })
    const [job] = queues[0]!.jobs
    // Its attempt is the number of failures + 1.
    expect(job).toMatchObject({ id: '3', attempt: 7, payloads: [{ input: { attr: 'fails' } }] })
    await stopped(working)
  })

  it('changes its number of shards, or its queue, and every job keeps payloads, scores, time and retry count', async () => {
    const { cwd, program, command, worker, job } = example()
    const enqueue = (attr: string, ...more: string[]) =>
      command('enqueue', 'ATestWorker', JSON.stringify({ attr }), ...more)
    await enqueue('newer', '--id', '7', '--score', '2', '--delay', '1h')
    await enqueue('older', '--id', '7', '--score', '1')
    await enqueue('fails', '--id', '3')
    const working = worker()
    // After its fourth failure it waits for 40 s, which none of the programs below takes.
    for (let failures = 1; failures <= 4; failures += 1) {
      await working.stdoutMatches(new RegExp(`failed .*, attempt ${failures}, again in ${failures}0 ?s`))
      if (failures < 4) await command('jobs', 'run-now', 'ATestWorker', '3')
    }
    await stopped(working)
    const before = await Promise.all(['7', '3'].map((id) => job(id, 'ATestWorker')))
    expect(before[0]).toMatchObject({ attempt: 1, state: 'scheduled', payloads: [{ score: 1 }, { score: 2 }] })
    expect(before[1]).toMatchObject({ attempt: 5, state: 'scheduled', payloads: [{ input: { attr: 'fails' } }] })

    const resharded = await runProcessJson(['queues', 'reshard', 'ATestWorker', '48'], { cwd })
    expect(resharded).toEqual({ queue: 'ATestWorker', shards: 48, moved: 2 })
    expect(await Promise.all(['7', '3'].map((id) => job(id, 'ATestWorker')))).toEqual(before)

    expect(await program('migration/move.ts')).toBe('2 moved\nthe old queue is empty\n')
    const moved = await Promise.all(['7', '3'].map((id) => job(id, 'ATestWorker_V2', ...migration)))
    expect(moved).toEqual(before.map((record) => ({ ...record, queue: 'ATestWorker_V2' })))

    await command('jobs', 'run-now', 'ATestWorker_V2', '7', ...migration)
    const next = worker(...migration, '--queues', 'ATestWorker_V2')
    await next.stdoutMatches(/some work for 7: \{"attr":"older"\}\nsome work for 7: \{"attr":"newer"\}\n/)
    await stopped(next)
  })
})
