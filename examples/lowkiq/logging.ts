/** The logging: a logger, and the three middlewares of Lowkiq's README that tell it of every run and every enqueue. */

import type { Middleware } from 'millrace'

export const logger = console

/** Around each run, the outermost. */
const runs: Middleware = {
  async run({ task, input }, next) {
    logger.info(`Started job for ${task.name} ${shown(input)}`)
    const answer = await next()
    logger.info(`Finished job for ${task.name} ${shown(input)}`)
    return answer
  },
}

/** Around each run too, inside the one above. What it throws on is what fails the jobs of the batch. */
const failures: Middleware = {
  async run({ task, input }, next) {
    try {
      return await next()
    } catch (error) {
      logger.error(`${(error as Error).message} ${task.name} ${shown(input)}`)
      throw error
    }
  },
}

/** Around each enqueue. */
const enqueues: Middleware = {
  async enqueue(items, next) {
    const jobs = `${items.length} ${items.length === 1 ? 'job' : 'jobs'} for ${items[0]?.task.name}`
    logger.info(`Enqueueing ${jobs}`)
    await next()
    logger.info(`Enqueued ${jobs}`)
  },
}

export const logging = [runs, failures, enqueues]

/** A batch is a map from ids to payloads. */
function shown(input: unknown): string {
  return JSON.stringify(input instanceof Map ? [...input] : input)
}
