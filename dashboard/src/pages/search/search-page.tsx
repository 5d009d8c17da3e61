/** The search page: jobs of all queues by id or by task. */

import { PageHead } from '../../frame/page-head.js'

export function SearchPage() {
  return <PageHead title="Search" />
}
