/** The throttles page: limits as they fill. */

import { PageHead } from '../../frame/page-head.js'

export function ThrottlesPage() {
  return <PageHead title="Throttles" />
}
