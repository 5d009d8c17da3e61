/** The overview page: all queues at a glance. */

import { PageHead } from '../../frame/page-head.js'

export function OverviewPage() {
  return <PageHead title="Overview" />
}
