/** The places: the page of each address. The first view does not wait for the code of the other pages. */

import type { ComponentChildren } from 'preact'
import { OverviewPage } from './pages/overview-page.js'
import { type LatePart, latePart } from './parts/late-part.js'
import { PageHead } from './parts/page-head.js'
import { TableNotice } from './parts/table-notice.js'

/** The names in an address; empty if it has none. */
interface Named {
  readonly queue: string
  readonly id: string
}

type Page = ((props: Named) => ComponentChildren) & Partial<Pick<LatePart<Named>, 'ask'>>

const ofMill = () => import('./pages/pages-of-mill.js')
const ofJobs = () => import('./pages/pages-of-jobs.js')
const ofQueue = () => import('./pages/pages-of-queue.js')

const places: readonly (readonly [pattern: string, page: Page])[] = [
  ['', OverviewPage],
  ['search', latePart(async () => (await ofJobs()).SearchPage)],
  ['workers', latePart(async () => (await ofMill()).WorkersPage)],
  ['throttles', latePart(async () => (await ofMill()).ThrottlesPage)],
  ['schedules', latePart(async () => (await ofMill()).SchedulesPage)],
  ['morgue', latePart(async () => (await ofMill()).MorguesPage)],
  ['queues/:queue', latePart(async () => (await ofQueue()).QueuePage)],
  ['queues/:queue/jobs', latePart(async () => (await ofJobs()).JobListPage)],
  ['queues/:queue/jobs/:id', latePart(async () => (await ofJobs()).JobPage)],
  ['queues/:queue/events', latePart(async () => (await ofQueue()).QueueEventsPage)],
  ['queues/:queue/morgue', latePart(async () => (await ofQueue()).MorguePage)],
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

function MissingPage() {
  return (
    <>
      <PageHead title="Nothing here" />
      <div class="panel">
        <TableNotice>
          <p>This address leads to no page.</p>
          <a class="link" href="./">
            All queues
          </a>
        </TableNotice>
      </div>
    </>
  )
}
