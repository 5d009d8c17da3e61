/** The job list page: the jobs of a queue, page by page. */

import { PageHead } from '../../frame/page-head.js'

export function JobListPage(_: { readonly queue: string }) {
  return <PageHead title="Jobs" />
}
