/** The connection state: whether the page shows live data. */

import { connection } from '../api/live-stream.js'
import { storeFailure } from '../state/live-overview.js'

const words = {
  connecting: ['text-muted', '◌', 'Connecting'],
  open: ['text-good', '●', 'Live'],
  lost: ['text-bad', '○', 'Reconnecting'],
  paused: ['text-muted', '‖', 'Paused'],
} as const

export function ConnectionState() {
  const failure = storeFailure.value
  const state = connection.value
  if (state === undefined) return <span />
  const [tone, sign, text] = failure === undefined ? words[state] : ['text-bad', '!', 'Store away']
  return (
    <output class="flex items-center gap-1.5 px-1.5 text-xs whitespace-nowrap text-muted" title={failure}>
      <span class={tone} aria-hidden="true">
        {sign}
      </span>
      {text}
    </output>
  )
}
