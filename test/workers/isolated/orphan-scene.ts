/** A scene with orphans: claims of isolated jobs that say of their worker and of their process whatever a test wants. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { defineTask, millrace } from 'millrace'
import { onTestFinished } from 'vitest'
import { storeSource } from '#src/mill/store-source.js'
import { identityText, type ProcessIdentity, processIdentity } from '#src/runtime/process/process-identity.js'
import type { Claim } from '#src/stores/contract/claim.js'
import { project } from '../../cli/project.js'

export const here = processIdentity()

const task = `{ name: 'film', queue: 'long', isolate: 'process', timeLimit: '1h', run: async () => 'run again' }`
const files = {
  'package.json': '{"type":"module"}',
  'tasks.js': `import { defineTask } from 'millrace'\nexport const film = defineTask(${task})\n`,
  'millrace.config.js': `import { millrace } from 'millrace'
import { film } from './tasks.js'
export default millrace({ store: 'sqlite:jobs.db', tasks: [film] })
`,
}

export interface Orphan {
  /** What its worker's id says. */
  readonly worker: ProcessIdentity
  /** Where it says that it runs. */
  readonly process: Partial<ProcessIdentity>
  readonly leaseMs?: number
}

/** A process that does nothing, until the test is over. `env`: variables that it has besides those of the test. */
export async function idleProcess(
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly child: ChildProcess; readonly identity: ProcessIdentity }> {
  const child = spawn('sleep', ['600'], { stdio: 'ignore', env: { ...process.env, ...env } })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  return { child, identity: processIdentity(child.pid) }
}

/** One that was there, and is dead. */
export async function deadProcess(): Promise<ProcessIdentity> {
  const { child, identity } = await idleProcess()
  child.kill('SIGKILL')
  await once(child, 'exit')
  return identity
}

/** A project on an SQLite file of its own, a mill whose workers run its task, and its store in hand. */
export async function orphanScene() {
  const folder = project(files)
  const descriptor = `sqlite:${join(folder, 'jobs.db')}`
  const module = pathToFileURL(join(folder, 'tasks.js')).href
  const film = defineTask({ name: 'film', queue: 'long', isolate: 'process', timeLimit: '1h', module })
  const mill = millrace({ store: descriptor, tasks: [film.handle(async () => 'run elsewhere')] })
  onTestFinished(() => mill.close())
  await mill.enqueue(film, null, { id: 'opens the queue', delay: '1h' })
  const store = await storeSource(descriptor).create()
  onTestFinished(() => store.close())

  /** Enqueues a job of that id, and has that worker, which is in the registry, take it and begin. */
  async function orphan(id: string, { worker, process, leaseMs = 600_000 }: Orphan): Promise<Claim> {
    const name = `${identityText(worker)}/1`
    const record = { ...worker, id: name, queues: ['long'], concurrency: 1, running: 1, startedAt: 0 }
    await store.workers!.beat(record, 600_000)
    await mill.enqueue(film, null, { id })
    const { claims } = await store.claim([{ queue: 'long', limit: 1 }], { worker: name, leaseMs })
    const [claim] = claims as [Claim]
    await store.extend([{ queue: 'long', id, fence: claim.fence, leaseMs, beat: { startedMs: 0, ...process } }])
    return claim
  }

  return { folder, descriptor, film, mill, store, orphan }
}
