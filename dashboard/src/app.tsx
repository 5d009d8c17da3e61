/** The app: shows the page of the address, once the viewer is known. */

import { useEffect, useRef } from 'preact/hooks'
import { isLoggedOut, loadSession, session } from './api/api-client.js'
import { Shell } from './page-shell.js'
import { LoginPage } from './pages/login-page.js'
import { TableNotice } from './parts/table-notice.js'
import { placeAt } from './places.js'
import { path } from './state/page-address.js'
import { useResource } from './state/resource.js'

export function App() {
  const asked = useResource(loadSession, [])
  if (isLoggedOut.value) return <LoginPage />
  if (session.value === undefined)
    return asked.error.value === undefined ? null : (
      <TableNotice error={asked.error.value} onRetry={() => void asked.refresh()} />
    )
  return (
    <Shell>
      <ShownPage />
    </Shell>
  )
}

/** The key is the queue or job: another one gets a new page. */
function ShownPage() {
  const shown = useRef(path.value)
  useEffect(() => {
    // A new page has the focus at its top, at the button that skips the frame.
    if (shown.current !== path.value) document.querySelector<HTMLElement>('#main')?.focus({ preventScroll: true })
    shown.current = path.value
  }, [path.value])
  const { page: Page, named } = placeAt(path.value)
  return <Page key={`${named.queue} ${named.id}`} {...named} />
}
