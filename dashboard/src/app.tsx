/** The app: which page an address shows, once it is known who looks at it. */

import { useEffect, useRef } from 'preact/hooks'
import { type BaseLocationHook, Route, Router, Switch } from 'wouter-preact'
import { loadSession } from './api/api-client.js'
import { isLoggedOut, session } from './api/session-state.js'
import { latePage } from './frame/late-page.js'
import { Shell } from './frame/page-shell.js'
import { LoginPage } from './pages/login/login-page.js'
import { MissingPage } from './pages/missing-page.js'
import { OverviewPage } from './pages/overview/overview-page.js'
import { TableNotice } from './parts/table-notice.js'
import { go, path } from './state/page-address.js'
import { useResource } from './state/resource.js'

/** The first view is not to wait for the code of the others. */
const QueueEventsPage = latePage(async () => (await import('./pages/events/queue-events-page.js')).QueueEventsPage)
const JobPage = latePage(async () => (await import('./pages/job/job-page.js')).JobPage)
const JobListPage = latePage(async () => (await import('./pages/jobs/job-list-page.js')).JobListPage)
const MorguePage = latePage(async () => (await import('./pages/morgue/morgue-page.js')).MorguePage)
const MorguesPage = latePage(async () => (await import('./pages/morgue/morgues-page.js')).MorguesPage)
const QueuePage = latePage(async () => (await import('./pages/queue/queue-page.js')).QueuePage)
const SchedulesPage = latePage(async () => (await import('./pages/schedules/schedules-page.js')).SchedulesPage)
const SearchPage = latePage(async () => (await import('./pages/search/search-page.js')).SearchPage)
const ThrottlesPage = latePage(async () => (await import('./pages/throttles/throttles-page.js')).ThrottlesPage)
const WorkersPage = latePage(async () => (await import('./pages/workers/workers-page.js')).WorkersPage)

/** The router decodes what it is given; the escapes of ids are to be left for `named`, which decodes once. */
const usePath: BaseLocationHook = () => [path.value.replaceAll('%', '%25'), go]

/** The names and ids in an address as they are. */
function named(params: Readonly<Record<string, string | undefined>>, name: string): string {
  const text = params[name] ?? ''
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function App() {
  const asked = useResource(loadSession, [])
  if (isLoggedOut.value) return <LoginPage />
  if (session.value === undefined)
    return asked.error.value === undefined ? null : (
      <TableNotice error={asked.error.value} onRetry={() => void asked.refresh()} />
    )
  return (
    <Router hook={usePath}>
      <Shell>
        <Places />
      </Shell>
    </Router>
  )
}

/** A page of another queue or job begins anew: its key is its name. */
function Places() {
  const shown = useRef(path.value)
  useEffect(() => {
    // Who opens the page begins at its top, with the button that skips the frame.
    if (shown.current !== path.value) document.querySelector<HTMLElement>('#main')?.focus({ preventScroll: true })
    shown.current = path.value
  }, [path.value])
  return (
    <Switch>
      <Route path="/" component={OverviewPage} />
      <Route path="/search" component={SearchPage} />
      <Route path="/workers" component={WorkersPage} />
      <Route path="/throttles" component={ThrottlesPage} />
      <Route path="/schedules" component={SchedulesPage} />
      <Route path="/morgue" component={MorguesPage} />
      <Route path="/queues/:queue">{(params) => <QueuePage key={params.queue} queue={named(params, 'queue')} />}</Route>
      <Route path="/queues/:queue/jobs">
        {(params) => <JobListPage key={params.queue} queue={named(params, 'queue')} />}
      </Route>
      <Route path="/queues/:queue/jobs/:id">
        {(params) => (
          <JobPage key={`${params.queue} ${params.id}`} queue={named(params, 'queue')} id={named(params, 'id')} />
        )}
      </Route>
      <Route path="/queues/:queue/events">
        {(params) => <QueueEventsPage key={params.queue} queue={named(params, 'queue')} />}
      </Route>
      <Route path="/queues/:queue/morgue">
        {(params) => <MorguePage key={params.queue} queue={named(params, 'queue')} />}
      </Route>
      <Route component={MissingPage} />
    </Switch>
  )
}
