/** The steps of command sequences: each run on a memory store, with its answer and the state before and after it. */

import {
  type CanonicalJob,
  type CanonicalQueue,
  type CanonicalState,
  type Command,
  memoryHarness,
} from 'millrace/store-testing'
import { CommandRun } from '#src/store-testing/sequences/command-run.js'

export interface Step {
  readonly command: Command
  readonly answer: unknown
  readonly before: readonly CanonicalQueue[]
  readonly after: readonly CanonicalQueue[]
  /** What the throttles had counted before it, and have after it. */
  readonly throttles: Readonly<Record<'before' | 'after', CanonicalState['throttles']>>
}

/** Every step of these sequences. */
export async function stepsOf(sequence: (seed: number, steps: number) => Command[], seeds: number, length: number) {
  const steps: Step[] = []
  for (let seed = 1_000; seed < 1_000 + seeds; seed++) {
    const harness = await memoryHarness()
    const run = new CommandRun(harness)
    let before: Pick<CanonicalState, 'queues' | 'throttles'> = { queues: [], throttles: [] }
    for (const command of sequence(seed, length)) {
      const answer = await run.answer(command)
      const after = await harness.dump()
      const throttles = { before: before.throttles, after: after.throttles }
      steps.push({ command, answer, before: before.queues, after: after.queues, throttles })
      before = after
    }
    await harness.close()
  }
  return steps
}

/** Live jobs, or entries of the morgue, before a step and what stands in the same place after it. */
export function pairs({ before, after }: Step, of: 'live' | 'dead'): [CanonicalJob, CanonicalJob | undefined][] {
  const isMeant = (job: CanonicalJob) => (job.state === 'dead') === (of === 'dead')
  return before.flatMap(({ name, jobs }) => {
    const next = after.filter((queue) => queue.name === name).flatMap((queue) => queue.jobs.filter(isMeant))
    return jobs
      .filter(isMeant)
      .map((job): [CanonicalJob, CanonicalJob | undefined] => [job, next.find(({ id }) => id === job.id)])
  })
}
