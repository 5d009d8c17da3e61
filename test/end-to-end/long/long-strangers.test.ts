import { spawnSync } from 'node:child_process'
import { chownSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, type TestContext } from 'vitest'
import { processIdentity } from '#src/runtime/process/process-identity.js'
import { CommandProcess } from '../../cli/command-process.js'
import { root } from '../../cli/project.js'
import { deadProcess, orphanScene } from '../../workers/isolated/orphan-scene.js'
import { begins, longProject, wait } from './long-project.js'

const longest = { timeout: 60_000 }
const main = join(root, 'dist/cli/main.js')
const nobody = 65_534

/** Runs a command line, which ends with it. */
const tied = `
import { spawn } from 'node:child_process'
const one = spawn('setpriv', ['--pdeathsig', 'KILL', ...process.argv.slice(2)], { stdio: 'inherit' })
one.on('exit', (code) => process.exit(code ?? 1))
`

/** `millrace work` with so many slots, behind what is put before it. */
function workBehind(folder: string, before: readonly string[], slots: number, env: Record<string, string> = {}) {
  const script = join(folder, 'tied.mjs')
  writeFileSync(script, tied)
  const args = [...before, process.execPath, main, 'work', '--json', '--concurrency', String(slots)]
  return new CommandProcess(args, { cwd: folder, env, script })
}

/** Skips, and says why, where this cannot be done here. */
function needs(context: TestContext, what: string, command: string, ...args: string[]): void {
  const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8', cwd: '/' })
  if (status === 0) return
  const reason = `${what}: ${error?.message ?? (stderr.trim() || `code ${status}`)}`
  console.log(`skipped: ${context.task.name} (${reason})`)
  context.skip(reason)
}

/** By the number that it has here, whatever its own namespace calls it. */
async function killWorker(work: CommandProcess): Promise<void> {
  const [started] = (await work.events('worker.started')) as [{ worker: string }]
  const [, , namespace, number] = started.worker.split('/')
  const pid = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .find((name) => namespaceOf(name) === namespace && innermost(name) === number)
  process.kill(Number(pid), 'SIGKILL')
}

const namespaceOf = (pid: string) => orNothing(() => /\d+/.exec(readlinkSync(`/proc/${pid}/ns/pid`))![0])
const innermost = (pid: string) =>
  orNothing(() => /^NSpid:.*?(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1])

/** Processes end while they are looked at. */
function orNothing<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}

function giveAll(folder: string, uid: number): void {
  chownSync(folder, uid, uid)
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) giveAll(join(folder, entry.name), uid)
    else if (!entry.isSymbolicLink()) chownSync(join(folder, entry.name), uid, uid)
}

describe('a process of another user', longest, () => {
  it('counts as alive and is adopted although it cannot be signalled; another process with its number is not', async (context) => {
    const isRoot = process.getuid!() === 0
    const as = isRoot ? [`--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'] : []
    const attempt = 'try { process.kill(1, 0) } catch (e) { process.exit(e.code === "EPERM" ? 0 : 1) } process.exit(1)'
    needs(
      context,
      'process 1 must be of a user who cannot be signalled',
      'setpriv',
      ...as,
      process.execPath,
      '-e',
      attempt,
    )
    needs(context, 'the package must be readable to everybody', 'setpriv', ...as, 'cat', main)
    const { folder, mill, orphan } = await orphanScene()
    const worker = await deadProcess()
    const first = processIdentity(1)
    await orphan('lives', { worker, process: first })
    await orphan('used again', { worker, process: { ...first, ticks: first.ticks + 1 } })
    if (isRoot) giveAll(folder, nobody)
    const work = workBehind(folder, as, 2)

    expect(await work.events('job.adopted')).toMatchObject([{ id: 'lives', child: 1 }])
    expect(await work.events('job.crashed')).toMatchObject([{ id: 'used again' }])
    expect(await mill.job('used again').result({ timeout: '20s' })).toBe('run again')
    expect(await mill.job('lives').status()).toBe('running')
  })
})

describe('two workers on one store, each in its own pid namespace', longest, () => {
  const contained = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']

  it('adopt only their own jobs after a kill and a restart: each job runs once', async (context) => {
    needs(context, 'a pid namespace must be allowed', 'unshare', ...contained.slice(1), 'true')
    needs(context, 'setpriv must be there', 'setpriv', '--pdeathsig', 'KILL', 'true')
    const of = await longProject()
    const inside = workBehind(of.folder, contained, 1, of.env)
    const theirs = await of.mill.enqueue(wait, of.file('go'))
    await begins(of)
    const outside = workBehind(of.folder, [], 1, of.env)
    const ours = await of.mill.enqueue(wait, of.file('go'))
    await begins(of, 2)

    for (const [work, job] of [[outside, ours] as const, [inside, theirs] as const]) {
      await killWorker(work)
      expect(await work.events('job.adopted')).toMatchObject([{ id: job.id }])
      await work.events('worker.started', 2)
    }
    writeFileSync(of.file('go'), '')
    for (const { id, pid } of of.begun())
      expect(await of.mill.job(wait, id).result({ timeout: '20s' })).toEqual({ pid })
    expect(of.begun().map(({ id }) => id)).toEqual([theirs.id, ours.id])
    expect((await of.mill.depths(['long']))[0]).toMatchObject({ processed: 2, failed: 0, crashed: 0 })
  })
})
