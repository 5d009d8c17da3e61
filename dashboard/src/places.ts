/** The places: which page an address shows. The first view does not wait for the code of the other pages. */

import type { ComponentChildren } from 'preact'
import { type LatePage, latePage } from './frame/late-page.js'
import { MissingPage } from './pages/missing-page.js'
import { OverviewPage } from './pages/overview/overview-page.js'

/** What an address names; empty where it names none. */
interface Named {
  readonly queue: string
  readonly id: string
}

type Page = ((props: Named) => ComponentChildren) & Partial<Pick<LatePage<Named>, 'ask'>>

const places: readonly (readonly [pattern: string, page: Page])[] = [
  ['', OverviewPage],
  ['search', latePage(async () => (await import('./pages/search/search-page.js')).SearchPage)],
  ['workers', latePage(async () => (await import('./pages/workers/workers-page.js')).WorkersPage)],
  ['throttles', latePage(async () => (await import('./pages/throttles/throttles-page.js')).ThrottlesPage)],
  ['schedules', latePage(async () => (await import('./pages/schedules/schedules-page.js')).SchedulesPage)],
  ['morgue', latePage(async () => (await import('./pages/morgue/morgues-page.js')).MorguesPage)],
  ['queues/:queue', latePage(async () => (await import('./pages/queue/queue-page.js')).QueuePage)],
  ['queues/:queue/jobs', latePage(async () => (await import('./pages/jobs/job-list-page.js')).JobListPage)],
  ['queues/:queue/jobs/:id', latePage(async () => (await import('./pages/job/job-page.js')).JobPage)],
  ['queues/:queue/events', latePage(async () => (await import('./pages/events/queue-events-page.js')).QueueEventsPage)],
  ['queues/:queue/morgue', latePage(async () => (await import('./pages/morgue/morgue-page.js')).MorguePage)],
]

export interface Place {
  readonly page: Page
  readonly named: Named
}

/** `path`: as the browser writes it, below the root. Names and ids are decoded once. */
export function placeAt(path: string): Place {
  const steps = path.replace(/^\/|\/$/g, '').split('/')
  for (const [pattern, page] of places) {
    const wanted = pattern.split('/')
    if (wanted.length !== steps.length) continue
    if (!wanted.every((step, i) => step === steps[i] || (step.startsWith(':') && steps[i] !== ''))) continue
    const named = wanted.flatMap((step, i) => (step.startsWith(':') ? [[step.slice(1), decoded(steps[i]!)]] : []))
    return { page, named: { queue: '', id: '', ...Object.fromEntries(named) } }
  }
  return { page: MissingPage, named: { queue: '', id: '' } }
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}
