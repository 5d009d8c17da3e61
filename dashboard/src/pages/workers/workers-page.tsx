/** The workers page: which processes run jobs. */

import { PageHead } from '../../frame/page-head.js'

export function WorkersPage() {
  return <PageHead title="Workers" />
}
