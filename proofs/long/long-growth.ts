/** The growth of a worker over many isolated jobs: its resources after the first and the last. */

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { jiti } from '../forked-program.js'
import { blank, LongSite } from './long-site.js'

export interface Held {
  readonly completed: number
  readonly heapUsed: number
  readonly rss: number
  /** The resident memory before the garbage of all threads was collected. */
  readonly uncollected: number
  readonly handles: number
  readonly zombies: number
  readonly open: number
}

const program = join(import.meta.dirname, 'long-leak.ts')
const collector = join(import.meta.dirname, 'collect.cjs')

/** Samples one worker after `first` completed jobs and after `last`. Nothing is in hand at either time. */
export async function growth(first: number, last: number): Promise<readonly [Held, Held]> {
  const site = new LongSite('30s')
  try {
    await site.mill.enqueueMany(blank, Array(first).fill(null))
    const env = {
      ...process.env,
      MILLRACE_STORE: `sqlite:${join(site.folder, 'jobs.db')}`,
      NODE_OPTIONS: `--require ${collector}`,
    }
    const args = ['--expose-gc', jiti, program, String(first), String(last)]
    const worker = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'inherit'] })
    const lines = createInterface({ input: worker.stdout })[Symbol.asyncIterator]()
    const next = async () => JSON.parse((await lines.next()).value as string) as Held
    const before = await next()
    await site.mill.enqueueMany(blank, Array(last - first).fill(null))
    worker.stdin.write('\n')
    return [before, await next()]
  } finally {
    await site.close()
  }
}
