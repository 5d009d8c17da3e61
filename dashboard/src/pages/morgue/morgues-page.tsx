/** The morgues page: the queues that have dead jobs. */

import { PageHead } from '../../frame/page-head.js'

export function MorguesPage() {
  return <PageHead title="Morgue" />
}
