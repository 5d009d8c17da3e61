/** The places: the page of each address. The first view does not wait for the code of the other pages. */

import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { OverviewPage } from './pages/overview-page.js'
import { PageHead } from './parts/page-head.js'
import { TableNotice, WaitingRows } from './parts/table-notice.js'

/** The names in an address; empty if it has none. */
interface Named {
  readonly queue: string
  readonly id: string
}

type Page = ((props: Named) => ComponentChildren) & Partial<Pick<LatePage<Named>, 'ask'>>

const ofMill = () => import('./pages/pages-of-mill.js')
const ofJobs = () => import('./pages/pages-of-jobs.js')
const ofQueue = () => import('./pages/pages-of-queue.js')

const places: readonly (readonly [pattern: string, page: Page])[] = [
  ['', OverviewPage],
  ['search', latePage(async () => (await ofJobs()).SearchPage)],
  ['workers', latePage(async () => (await ofMill()).WorkersPage)],
  ['throttles', latePage(async () => (await ofMill()).ThrottlesPage)],
  ['schedules', latePage(async () => (await ofMill()).SchedulesPage)],
  ['morgue', latePage(async () => (await ofMill()).MorguesPage)],
  ['queues/:queue', latePage(async () => (await ofQueue()).QueuePage)],
  ['queues/:queue/jobs', latePage(async () => (await ofJobs()).JobListPage)],
  ['queues/:queue/jobs/:id', latePage(async () => (await ofJobs()).JobPage)],
  ['queues/:queue/events', latePage(async () => (await ofQueue()).QueueEventsPage)],
  ['queues/:queue/morgue', latePage(async () => (await ofQueue()).MorguePage)],
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

/** A page whose code is loaded when it is first shown. */
interface LatePage<Props> {
  (props: Props): ComponentChildren
  /** Begins to load the code, before the page is shown. Never rejects. */
  ask(): Promise<void>
}

/** `load` is called once, and again after it has failed. */
function latePage<Props extends object>(load: () => Promise<(props: Props) => ComponentChildren>): LatePage<Props> {
  const found = signal<{ readonly page: (props: Props) => ComponentChildren } | undefined>(undefined)
  const failure = signal<Error | undefined>(undefined)
  let loading: Promise<void> | undefined
  const ask = (): Promise<void> => {
    loading ??= load()
      .then((page) => {
        found.value = { page }
        failure.value = undefined
      })
      .catch(() => {
        loading = undefined
        failure.value = new Error('The code of this page could not be loaded. After an update, load the page anew.')
      })
    return loading
  }
  const shown = (props: Props) => {
    useLayoutEffect(() => void ask(), [])
    if (found.value !== undefined) {
      const { page: Page } = found.value
      return <Page {...props} />
    }
    return failure.value === undefined ? (
      <WaitingRows />
    ) : (
      <TableNotice error={failure.value} onRetry={() => void ask()} />
    )
  }
  return Object.assign(shown, { ask })
}
