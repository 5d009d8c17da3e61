/**
 * Endurance: the resources of one worker process, sampled over many jobs. Started by itself, with `--expose-gc`, this
 * file is that worker and reports to its parent.
 */

import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTask, millrace } from 'millrace'
import { forkedProgram } from '../forked-program.js'
import { type ProcessSample, processSample } from '../process-sample.js'

export interface Sample extends ProcessSample {
  readonly jobs: number
}

/** Samples a process of its own at equal numbers of jobs, on a new SQLite file or the store at `url`. */
export async function endurance(
  plan: { readonly jobs: number; readonly samples: number },
  url?: string,
): Promise<Sample[]> {
  const args = [String(plan.jobs), String(plan.samples), ...(url === undefined ? [] : [url])]
  const child = forkedProgram(import.meta.filename, args, { flags: ['--expose-gc'] })
  const samples: Sample[] = []
  child.on('message', (sample: Sample) => samples.push(sample))
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`the process ended with ${code}`)
  return samples
}

/** Growth per 100,000 jobs by least squares. */
export function slope(samples: readonly Sample[], of: 'heapMb' | 'rssMb' | 'descriptors' | 'resources'): number {
  const n = samples.length
  const meanX = samples.reduce((sum, { jobs }) => sum + jobs, 0) / n
  const meanY = samples.reduce((sum, sample) => sum + sample[of], 0) / n
  const covariance = samples.reduce((sum, sample) => sum + (sample.jobs - meanX) * (sample[of] - meanY), 0)
  const variance = samples.reduce((sum, { jobs }) => sum + (jobs - meanX) ** 2, 0)
  return (covariance / variance) * 100_000
}

async function work(jobs: number, samples: number, url?: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-endurance-'))
  const task = defineTask({ name: 'blank', run: async () => ({ ok: true }) })
  const mill = millrace({ store: url ?? `sqlite:${join(folder, 'jobs.db')}`, tasks: [task] })
  let completed = 0
  let reached: { at: number; tell: () => void } | undefined
  mill.on('job.completed', () => {
    completed += 1
    if (completed === reached?.at) reached.tell()
  })
  const run = async (count: number) => {
    const done = new Promise<void>((tell) => {
      reached = { at: completed + count, tell }
    })
    const inputs = Array.from({ length: 500 }, (_, n) => ({ n }))
    for (let i = 0; i < count; i += inputs.length) await mill.enqueueMany(task, inputs)
    await done
  }
  await mill.worker({ concurrency: 100 }).start()
  await run(jobs / samples)
  for (let i = 0; i < samples; i += 1) {
    await run(jobs / samples)
    process.send!({ jobs: completed, ...processSample() } satisfies Sample)
  }
  await mill.close()
  rmSync(folder, { recursive: true })
  process.disconnect()
}

const [jobs, samples, url] = process.argv.slice(2)
if (process.argv[1] === import.meta.filename && process.send !== undefined)
  await work(Number(jobs), Number(samples), url)
