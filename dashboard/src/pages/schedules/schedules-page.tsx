/** The schedules page: what is enqueued by the clock. */

import { PageHead } from '../../frame/page-head.js'

export function SchedulesPage() {
  return <PageHead title="Schedules" />
}
