/** The job page: everything that is known of a job. */

import { PageHead } from '../../frame/page-head.js'

export function JobPage(_: { readonly queue: string; readonly id: string }) {
  return <PageHead title="Job" />
}
