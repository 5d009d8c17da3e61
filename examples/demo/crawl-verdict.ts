/** The verdict on a crawl: whether a site's log shows every page once, and never more visits than its throttle allows. */

import { crawlPace } from './queues.js'
import { linksIn, pageAt, type Site, type Visit } from './site.js'

/** A visit may be that much later than the permit for it: a process was busy, or the machine. */
const lateMs = 300

/** The pages that can be reached from the first, found without a queue. */
export function reachableFrom(root: string, first: string): string[] {
  const found = new Set([first])
  for (const path of found) {
    const page = pageAt(root, path)
    // What is added meanwhile has its turn too.
    if (page !== undefined) for (const link of linksIn(page, path)) found.add(link)
    else found.delete(path)
  }
  return [...found]
}

export function problemsOf({ host, visits }: Site, pages: readonly string[]): string[] {
  return [...timesOf(host, visits, pages), ...rushesOf(host, visits)]
}

function timesOf(host: string, visits: readonly Visit[], pages: readonly string[]): string[] {
  return pages.flatMap((page) => {
    const times = visits.filter(({ path }) => path === page).length
    return times === 1 ? [] : [`${host}${page} was fetched ${times} times`]
  })
}

/** In every window, less what a visit may be late, there are as many as may be; and they are spaced. */
function rushesOf(host: string, visits: readonly Visit[]): string[] {
  const { limit, windowMs } = crawlPace
  const instants = visits.map(({ at }) => at).sort((a, b) => a - b)
  const rushed = instants.filter((at, i) => (instants[i + limit] ?? Infinity) - at < windowMs - lateMs)
  const gaps = instants.slice(1).map((at, i) => at - instants[i]!)
  const spacingMs = windowMs / limit
  return [
    ...(rushed.length === 0 ? [] : [`${host}: more than ${limit} visits in ${windowMs} ms`]),
    ...(median(gaps) >= spacingMs * 0.8 ? [] : [`${host}: visits are not spaced by ${spacingMs} ms`]),
  ]
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Infinity
}
