/** A link that leaves the documentation, for a file of the repository that the site does not have. */

import { posix } from 'node:path'

/** Whether this relative link, on the page of this path below `docs/`, leads out of `docs/`. */
export function isOutside(link: string, page: string): boolean {
  if (/^(?:[a-z]+:|[/#])/.test(link)) return false
  return posix.join(posix.dirname(page), link).startsWith('../')
}
