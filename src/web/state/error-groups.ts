/** The error groups: the dead jobs of a queue by task and by the first line of their error. */

import type { QueueAdmin } from '../../client/admin/queue-admin.js'
import type { JobRecord } from '../../core/job/job.js'

interface ErrorGroup {
  readonly error: string
  readonly task: string
  count: number
  /** The first 1,000 of them. */
  readonly ids: string[]
  /** When the last of them died. */
  lastAt: Date | undefined
}

const mostScanned = 5_000
const mostGroups = 200
const mostIds = 1_000
const longestError = 300

/** Groups the latest 5,000 dead jobs; `more`: there are others. The largest groups come first. */
export async function errorGroups({
  morgue,
}: QueueAdmin): Promise<{ scanned: number; more: boolean; groups: ErrorGroup[] }> {
  const groups = new Map<string, ErrorGroup>()
  let scanned = 0
  let cursor: string | undefined
  do {
    const page = await morgue.list({ limit: 200, ...(cursor !== undefined && { cursor }) })
    for (const job of page.jobs) add(groups, job)
    scanned += page.jobs.length
    cursor = page.cursor
  } while (cursor !== undefined && scanned < mostScanned)
  const largest = [...groups.values()].sort((a, b) => b.count - a.count)
  return { scanned, more: cursor !== undefined || largest.length > mostGroups, groups: largest.slice(0, mostGroups) }
}

function add(groups: Map<string, ErrorGroup>, job: JobRecord): void {
  const error = firstLine(job)
  const key = JSON.stringify([job.task, error])
  const group = groups.get(key) ?? { error, task: job.task, count: 0, ids: [], lastAt: job.finishedAt }
  groups.set(key, group)
  group.count += 1
  if (group.ids.length < mostIds) group.ids.push(job.id)
  if (job.finishedAt !== undefined && (group.lastAt === undefined || job.finishedAt > group.lastAt))
    group.lastAt = job.finishedAt
}

function firstLine({ error, reason }: JobRecord): string {
  const [line = ''] = (error ?? reason ?? '').split('\n')
  return line.slice(0, longestError).toWellFormed()
}
