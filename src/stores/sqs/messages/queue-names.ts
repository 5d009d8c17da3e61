/** Names in SQS: the names of a queue and of its dead-letter queue there. Pure. */

import { ConfigError } from '../../../core/errors.js'

export interface QueueNames {
  readonly live: string
  readonly dead: string
}

const fifoEnd = '.fifo'
const longestName = 80

/** Throws `ConfigError` for a name that SQS does not take. An empty namespace adds no prefix. */
export function queueNames(namespace: string, queue: string, isFifo: boolean): QueueNames {
  const name = `${namespace === '' ? '' : `${namespace}-`}${queue}`
  const [live, dead] = [name, `dlq-${name}`].map((one) => (isFifo ? one + fifoEnd : one)) as [string, string]
  const refuse = (problem: string): never => {
    throw new ConfigError('the store', [
      { path: `queues.${queue}`, message: `would be '${live}' and '${dead}' in SQS, ${problem}` },
    ])
  }
  if (!/^[\w-]+$/.test(name))
    refuse("which takes letters of ASCII, digits, '-' and '_' only. Choose another name or namespace")
  if (dead.length > longestName)
    refuse(
      `which takes at most ${longestName} characters; the second has ${dead.length}. Choose a shorter name or namespace`,
    )
  return { live, dead }
}
