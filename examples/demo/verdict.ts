/** The verdict on the demo: whether every file has exactly one result and the right one, and whom the lottery served. */

import type { Mill } from 'millrace'
import { type QueueName, queueNames, queues } from './queues.js'
import { type Checksum, sha256Of } from './tasks.js'

export interface Job {
  readonly id: string
  readonly queue: QueueName
  readonly file: string
  /** Ready at once, and its first run the only one. */
  readonly plain: boolean
}

export interface Result extends Checksum {
  readonly id: string
  readonly queue: QueueName
  readonly file: string
}

const filesAtOnce = 8
const mostProblems = 10

/** Every result that the store has kept, page by page. */
export async function resultsOf(mill: Mill): Promise<Result[]> {
  const results: Result[] = []
  for (const queue of queueNames) {
    for (let cursor: string | undefined; ; ) {
      const page = await mill
        .queue(queue)
        .jobs.list({ state: 'completed', by: 'id', limit: 200, ...(cursor !== undefined && { cursor }) })
      for (const { id, input, result } of page.jobs)
        results.push({ id, queue, file: (input as { file: string }).file, ...(result as Checksum) })
      cursor = page.cursor
      if (cursor === undefined) break
    }
  }
  return results
}

/** What differs from one right result per file; empty where all is well. The checksums are made here, without the queue. */
export async function problemsOf(jobs: readonly Job[], results: readonly Result[]): Promise<string[]> {
  const problems: string[] = []
  const byFile = new Map<string, Result[]>()
  for (const result of results) byFile.set(result.file, [...(byFile.get(result.file) ?? []), result])
  const files = new Set(jobs.map(({ file }) => file))
  for (const file of byFile.keys()) if (!files.has(file)) problems.push(`${file}: a result that nobody asked for`)
  const left = [...jobs]
  const check = async () => {
    for (let job = left.pop(); job !== undefined && problems.length < mostProblems; job = left.pop()) {
      const found = byFile.get(job.file) ?? []
      const [result] = found
      if (result === undefined || found.length > 1) problems.push(`${job.file}: ${found.length} results instead of one`)
      else if (result.id !== job.id) problems.push(`${job.file}: the result of job ${result.id} instead of ${job.id}`)
      else if (result.sha256 !== (await sha256Of(job.file))) problems.push(`${job.file}: a wrong checksum`)
    }
  }
  await Promise.all(Array.from({ length: filesAtOnce }, check))
  return problems
}

export interface Shares {
  readonly claims: number
  /** Parts of 1. */
  readonly of: Readonly<Record<QueueName, number>>
}

/** Each queue's part of the claims made until the first of them had handed out the last of its plain jobs. */
export function sharesOf(jobs: readonly Job[], results: readonly Result[]): Shares {
  const plain = new Set(jobs.filter((job) => job.plain).map(({ id }) => id))
  const lastPlainOf = queueNames.map((queue) =>
    Math.max(0, ...results.filter((result) => result.queue === queue && plain.has(result.id)).map((r) => r.startedAt)),
  )
  const until = Math.min(...lastPlainOf)
  // All jobs of one claim have its fence.
  const claims = new Set(
    results.filter(({ startedAt }) => startedAt <= until).map(({ queue, fence }) => `${queue} ${fence}`),
  )
  const part = (queue: QueueName) =>
    claims.size === 0 ? 0 : [...claims].filter((claim) => claim.startsWith(`${queue} `)).length / claims.size
  return { claims: claims.size, of: { high: part('high'), default: part('default'), low: part('low') } }
}

/** What the weights promise. */
export function expectedShare(queue: QueueName): number {
  const tickets = queueNames.reduce((sum, name) => sum + queues[name].weight, 0)
  return queues[queue].weight / tickets
}
