/** The missing page: an address that leads nowhere. */

import { PageHead } from '../frame/page-head.js'
import { TableNotice } from '../parts/table-notice.js'

export function MissingPage() {
  return (
    <>
      <PageHead title="Nothing here" />
      <div class="panel">
        <TableNotice>
          <p>This address leads to no page.</p>
          <a class="link" href="./">
            All queues
          </a>
        </TableNotice>
      </div>
    </>
  )
}
