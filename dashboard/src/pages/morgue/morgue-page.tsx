/** The morgue page: the dead jobs of a queue by their error. */

import { PageHead } from '../../frame/page-head.js'

export function MorguePage(_: { readonly queue: string }) {
  return <PageHead title="Morgue" />
}
