/**
 * Starts: how long a process takes to its first output or claim, and how much memory an idle worker takes; of the package as
 * it is published.
 */

import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { defineTask, millrace } from 'millrace'
import type { BenchReport } from './bench.js'
import { startRedisServer } from './redis/redis-server.js'
import { roundsOf, roundsText } from './rounds.js'

const home = join(import.meta.dirname, '..')
const megabyte = 1_048_576

/** Options: `--quick`; `--baseline=../earlier`: against Millrace as built in that checkout, in turns. */
export async function bench(report: BenchReport): Promise<unknown> {
  const rounds = process.argv.includes('--quick') ? 1 : 11
  const baseline = process.argv.find((argument) => argument.startsWith('--baseline='))?.slice('--baseline='.length)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const server = await startRedisServer()
  report.say(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}, medians of ${rounds} (spread)`)
  const figures: Record<string, Record<string, number>> = {}
  const told = (what: string, unit: string, by: Record<string, number[]>) => {
    for (const [name, all] of Object.entries(by)) {
      const spread = roundsOf(all)
      report.say(`${what.padEnd(34)} ${name.padEnd(9)} ${roundsText(spread, 0)} ${unit}`)
      figures[what] = { ...figures[what], [name]: Math.round(spread.median) }
    }
  }
  try {
    const builds = {
      millrace: published(home, join(folder, 'millrace')),
      ...(baseline === undefined ? {} : { baseline: published(resolve(baseline), join(folder, 'baseline')) }),
    }
    writeFileSync(join(folder, 'millrace.config.mjs'), "export default { store: 'sqlite:jobs.db', tasks: [] }\n")
    told('node -e 0', 'ms', { node: inTurns(rounds, { node: ['-e', '0'] }, folder)['node']! })
    for (const words of ['--version', '--help', 'stats']) {
      const programs = mapped(builds, (at) => [join(at, 'dist/cli/main.js'), words])
      told(`millrace ${words}`, 'ms', inTurns(rounds, programs, folder))
    }
    told(
      'import millrace',
      'ms',
      inTurns(
        rounds,
        mapped(builds, (at) => ['--input-type=module', '-e', `import '${at}/dist/index.js'`]),
        folder,
      ),
    )
    for (const store of [`sqlite:${join(folder, 'first.db')}`, server.url]) {
      const starts = mapped(builds, () => [] as number[])
      const sizes = mapped(builds, () => [] as number[])
      for (let round = 0; round < rounds; round += 1)
        for (const name of Object.keys(builds) as (keyof typeof builds)[]) {
          const { ms, rss } = await firstClaim(builds[name]!, store)
          starts[name]!.push(ms)
          sizes[name]!.push(rss / megabyte)
        }
      const ground = store.split(':')[0]
      told(`node to first claim, ${ground}`, 'ms', starts)
      told(`idle worker, ${ground}`, 'MB', sizes)
    }
    return { figures }
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true })
  }
}

/** Makes the package of a checkout in this folder, from what the checkout has built, and returns the folder. */
function published(checkout: string, folder: string): string {
  for (const name of ['package.json', 'dist']) cpSync(join(checkout, name), join(folder, name), { recursive: true })
  symlinkSync(join(checkout, 'node_modules'), join(folder, 'node_modules'))
  const { status, stderr } = spawnSync(process.execPath, [join(checkout, 'scripts/slim-dist.mjs'), folder], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`the package of ${checkout} cannot be made: ${stderr}`)
  return folder
}

function mapped<T, U>(of: Record<string, T>, to: (one: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(of).map(([name, one]) => [name, to(one)]))
}

/** From the start of each program to its end. */
function inTurns(rounds: number, programs: Record<string, string[]>, cwd: string): Record<string, number[]> {
  const took = mapped(programs, () => [] as number[])
  for (let round = -1; round < rounds; round += 1)
    for (const [name, args] of Object.entries(programs)) {
      const startedAt = performance.now()
      const { status, stderr } = spawnSync(process.execPath, args, { cwd, encoding: 'utf8' })
      if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${status}: ${stderr}`)
      // The first round reads the files from the disk.
      if (round >= 0) took[name]!.push(performance.now() - startedAt)
    }
  return took
}

async function firstClaim(checkout: string, store: string): Promise<{ ms: number; rss: number }> {
  const first = defineTask({ name: 'first' })
  const mill = millrace({ store, tasks: [first] })
  await mill.enqueue(first)
  await mill.close()
  const startedAt = performance.now()
  const child = fork(join(import.meta.dirname, 'start-worker.mjs'), [checkout, store], { execArgv: [] })
  await once(child, 'message')
  const ms = performance.now() - startedAt
  const [{ rss }] = (await once(child, 'message')) as [{ rss: number }]
  child.kill('SIGTERM')
  await once(child, 'exit')
  return { ms, rss }
}
