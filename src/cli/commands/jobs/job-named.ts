/**
 * The jobs that a command names, in every command alike: by queue and id, by both in one word as in logs, `sync/e-3`, or by
 * an id alone, which is looked for in all declared queues.
 */

import type { Command } from 'commander'
import type { Mill } from '../../../mill/mill.js'
import { millCommand } from '../../mill-command.js'
import { OperationError, UsageError } from '../../process/exit-code.js'

/** The words after the name of the command. */
type JobWords = readonly [first: string, ...rest: string[]]

interface JobPlace {
  readonly queue: string
  readonly id: string
}

interface JobPlaces {
  readonly queue: string
  readonly ids: readonly string[]
}

/** Where an id alone is looked for. */
export type JobFacet = 'jobs' | 'morgue'

/**
 * A command that takes jobs. `ids` is how its help writes their ids, as does the list of commands in that of its parent;
 * the action gets all its words in one list.
 */
export function jobCommand(parent: Command, verb: string, ids: string, summary: string): Command {
  parent.configureHelp({
    subcommandTerm: (command) => `${command.name()} ${command.usage().replace('[options] ', '')}`,
  })
  return millCommand(parent, `${verb} <id...>`, summary).usage(`[options] [queue] ${ids}`)
}

/**
 * The job that these words name, and the words after it. Rejects with `UnknownQueueError`, with `UsageError` if the id is
 * missing or several queues have it, and with `OperationError` if no queue keeps a job of this id.
 */
export async function jobNamed(
  mill: Mill,
  facet: JobFacet,
  words: JobWords,
): Promise<JobPlace & { readonly rest: readonly string[] }> {
  const [first, ...rest] = words
  if (!mill.queues.has(first)) return { ...(await placeOf(mill, facet, first)), rest }
  const [id, ...others] = rest
  if (id === undefined) throw new UsageError(`the id of the job is missing; it follows the queue '${first}'.`)
  return { queue: first, id, rest: others }
}

/** The one job that these words name. Rejects like `jobNamed`, and with `UsageError` if a word is left over. */
export async function oneJobNamed(mill: Mill, facet: JobFacet, words: JobWords): Promise<JobPlace> {
  if (words.length > 1) await leadOf(mill, facet, words[0])
  const { queue, id, rest } = await jobNamed(mill, facet, words)
  if (rest.length === 0) return { queue, id }
  throw new UsageError(`one job is expected, as [queue] <id>; '${rest[0]}' is too much.`)
}

/**
 * The jobs of one queue that these words name: none if the queue stands alone. Rejects like `jobNamed`, and with
 * `UsageError` if several ids have no queue before them.
 */
export async function jobsNamed(mill: Mill, facet: JobFacet, words: JobWords): Promise<JobPlaces> {
  const [first, ...ids] = words
  if (ids.length === 0 && !mill.queues.has(first)) {
    const { queue, id } = await placeOf(mill, facet, first)
    return { queue, ids: [id] }
  }
  const lead = await leadOf(mill, facet, first)
  if (typeof lead === 'string') return { queue: lead, ids }
  throw new UsageError(
    `'${first}' is a job, not a queue. To name several jobs put their queue before the ids: ${[lead.queue, lead.id, ...ids].slice(0, 3).join(' ')} …`,
  )
}

/** The queue or the job that the first word names. Rejects with `UnknownQueueError` if it names neither. */
async function leadOf(mill: Mill, facet: JobFacet, word: string): Promise<string | JobPlace> {
  if (mill.queues.has(word)) return word
  return (await placeIn(mill, facet, word)) ?? mill.queue(word).name
}

/** The place of a job that is named by a single word. Rejects with `OperationError` if there is none. */
async function placeOf(mill: Mill, facet: JobFacet, word: string): Promise<JobPlace> {
  const place = await placeIn(mill, facet, word)
  if (place !== undefined) return place
  const names = [...mill.queues.keys()]
  throw new OperationError(
    `'${word}' is neither a declared queue nor a job that one of them keeps: it ended without a kept result, or never existed; declared are: ${names.join(', ') || 'none'}.`,
  )
}

/** The same, undefined if there is none. */
async function placeIn(mill: Mill, facet: JobFacet, word: string): Promise<JobPlace | undefined> {
  const names = [...mill.queues.keys()]
  const jobs = await Promise.all(names.map((name) => mill.queue(name)[facet].get(word)))
  const found = names.filter((_, i) => jobs[i] !== undefined)
  if (found.length > 1)
    throw new UsageError(
      `job '${word}' is in the queues ${found.join(', ')}: name the one that is meant before the id.`,
    )
  if (found.length === 1) return { queue: found[0]!, id: word }
  const end = word.indexOf('/')
  const [queue, id] = [word.slice(0, end), word.slice(end + 1)]
  return end > 0 && id !== '' && mill.queues.has(queue) ? { queue, id } : undefined
}
