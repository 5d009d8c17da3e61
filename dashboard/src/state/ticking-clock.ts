/** The ticking clock: the present second, for words such as "5 s ago". It stops while the page is hidden. */

import { signal } from '@preact/signals'

export const now = signal(Date.now())

setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 1_000)
