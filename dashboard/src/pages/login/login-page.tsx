/** The log-in page: asks for the token. */

import { PageHead } from '../../frame/page-head.js'

export function LoginPage() {
  return <PageHead title="Log in" />
}
