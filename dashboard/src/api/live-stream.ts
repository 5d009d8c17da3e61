/**
 * The live stream: server-sent events of one address, opened again when it breaks off, closed while the page is hidden.
 */

import { computed, signal } from '@preact/signals'
import { loadSession } from './api-client.js'
import { apiAddress } from './api-path.js'

type StreamState = 'connecting' | 'open' | 'lost' | 'paused'

const byUrgency: readonly StreamState[] = ['lost', 'connecting', 'paused', 'open']
const states = signal<ReadonlyMap<symbol, StreamState>>(new Map())

/** The worst state of the page's streams; undefined if it has none. */
export const connection = computed(() => byUrgency.find((state) => [...states.value.values()].includes(state)))

function tell(stream: symbol, state: StreamState | undefined): void {
  const next = new Map(states.value)
  if (state === undefined) next.delete(stream)
  else next.set(stream, state)
  states.value = next
}

interface LiveStreamOptions {
  /** The handlers by the name of the event; each receives the event's data. */
  readonly on: Readonly<Record<string, (data: never) => void>>
  /** Called when events may be missing: after a pause or a break. */
  readonly onAgain?: () => void
  /** Called when it broke off, or could not be opened. */
  readonly onLost?: () => void
}

const firstWaitMs = 1_000
const longestWaitMs = 15_000

/** Opens it; returns the function that closes it. An event `end` closes it too. */
export function openStream(path: string, { on, onAgain, onLost }: LiveStreamOptions): () => void {
  let source: EventSource | undefined
  let waitMs = firstWaitMs
  let timer = 0
  let hasBroken = false
  let isOver = false
  const own = Symbol(path)

  const close = (state: StreamState | undefined) => {
    clearTimeout(timer)
    source?.close()
    source = undefined
    tell(own, state)
  }
  const over = () => {
    isOver = true
    close(undefined)
    document.removeEventListener('visibilitychange', look)
  }
  const open = () => {
    close('connecting')
    const opened = new EventSource(apiAddress(path))
    source = opened
    opened.onopen = () => {
      tell(own, 'open')
      waitMs = firstWaitMs
      if (hasBroken) onAgain?.()
      hasBroken = false
    }
    opened.onerror = () => {
      hasBroken = true
      // Not left to the browser, which gives up for ever after an answer such as 503.
      close('lost')
      timer = window.setTimeout(open, waitMs)
      waitMs = Math.min(longestWaitMs, waitMs * 2)
      // An `EventSource` does not say why; if the session has ended, this shows the log-in.
      loadSession().catch(() => {})
      onLost?.()
    }
    for (const [name, hear] of Object.entries(on))
      opened.addEventListener(name, (event) => hear(JSON.parse((event as MessageEvent<string>).data) as never))
    opened.addEventListener('end', over)
  }
  const look = () => {
    if (isOver) return
    if (!document.hidden) return open()
    hasBroken = true
    close('paused')
  }
  document.addEventListener('visibilitychange', look)
  if (document.hidden) close('paused')
  else open()
  return over
}
