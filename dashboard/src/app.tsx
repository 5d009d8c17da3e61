/** The app: which page an address shows, once it is known who looks at it. */

import { useEffect } from 'preact/hooks'
import { type BaseLocationHook, Route, Router, Switch } from 'wouter-preact'
import { loadSession } from './api/api-client.js'
import { isLoggedOut, session } from './api/session-state.js'
import { Shell } from './frame/page-shell.js'
import { QueueEventsPage } from './pages/events/queue-events-page.js'
import { JobPage } from './pages/job/job-page.js'
import { JobListPage } from './pages/jobs/job-list-page.js'
import { LoginPage } from './pages/login/login-page.js'
import { MissingPage } from './pages/missing-page.js'
import { MorguePage } from './pages/morgue/morgue-page.js'
import { MorguesPage } from './pages/morgue/morgues-page.js'
import { OverviewPage } from './pages/overview/overview-page.js'
import { QueuePage } from './pages/queue/queue-page.js'
import { SchedulesPage } from './pages/schedules/schedules-page.js'
import { SearchPage } from './pages/search/search-page.js'
import { ThrottlesPage } from './pages/throttles/throttles-page.js'
import { WorkersPage } from './pages/workers/workers-page.js'
import { TableNotice } from './parts/table-notice.js'
import { go, path } from './state/page-address.js'
import { useResource } from './state/resource.js'

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
  useEffect(() => {
    document.querySelector<HTMLElement>('#main')?.focus({ preventScroll: true })
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
