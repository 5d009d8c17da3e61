/** The events page: what becomes of the jobs of a queue as it happens. */

import { PageHead } from '../../frame/page-head.js'

export function QueueEventsPage(_: { readonly queue: string }) {
  return <PageHead title="Events" />
}
