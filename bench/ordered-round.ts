/** A round of ordered jobs: jobs with distinct ids that already wait, run by one worker. */

import { defineOrderedTask, millrace } from 'millrace'
import { workedOff } from './sqlite/worked-off.js'

export interface OrderedRound {
  /** From the start of the worker to its last completion. */
  readonly seconds: number
  /** The mean number of jobs per claim. */
  readonly perCall: number
}

const perEnqueue = 1_000

export async function orderedRound(
  store: string,
  { jobs, batchSize, concurrency }: { jobs: number; batchSize: number; concurrency: number },
): Promise<OrderedRound> {
  const blank = defineOrderedTask({ name: 'blank-ordered', batchSize, run: async () => {} })
  const mill = millrace({ store, tasks: [blank], logger: silent })
  const inputs = Array.from({ length: jobs }, () => ({ n: 1_234 }))
  for (let from = 0; from < jobs; from += perEnqueue)
    await mill.enqueueMany(blank, inputs.slice(from, from + perEnqueue), (_, i) => ({ id: `order-${from + i}` }))
  const { seconds, claims } = await workedOff(mill, jobs, concurrency)
  await mill.close()
  return { seconds, perCall: jobs / claims }
}

const ignore = () => {}
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore }
