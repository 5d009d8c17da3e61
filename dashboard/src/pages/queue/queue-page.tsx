/** The queue page: one queue with its counts, charts and settings. */

import { PageHead } from '../../frame/page-head.js'

export function QueuePage(_: { readonly queue: string }) {
  return <PageHead title="Queue" />
}
