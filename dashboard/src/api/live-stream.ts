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

/** Of the streams whose source cannot be read now, why. */
const failures = signal<ReadonlyMap<symbol, string>>(new Map())

/** Why the store cannot be read now, so that the page shows what was; undefined if no stream says so. */
export const storeFailure = computed<string | undefined>(() => [...failures.value.values()][0])

/** The map with this value; without one if it is undefined. */
function withValue<V>(map: ReadonlyMap<symbol, V>, key: symbol, value: V | undefined): ReadonlyMap<symbol, V> {
  if (map.get(key) === value) return map
  const next = new Map(map)
  if (value === undefined) next.delete(key)
  else next.set(key, value)
  return next
}

/** A stream in another state has yet to say whether its source can be read. */
function tell(stream: symbol, state: StreamState | undefined): void {
  states.value = withValue(states.value, stream, state)
  tellFailure(stream, undefined)
}

function tellFailure(stream: symbol, failure: string | undefined): void {
  failures.value = withValue(failures.value, stream, failure)
}

interface LiveStreamOptions {
  /** The handlers by the name of the event; each receives the event's data. `failure` becomes `storeFailure` without one. */
  readonly on: Readonly<Record<string, (data: never) => void>>
  /** Called when events may be missing: after a pause or a break. */
  readonly onAgain?: () => void
  /** Called when it broke off, or could not be opened. */
  readonly onLost?: () => void
}

const firstWaitMs = 1_000
const longestWaitMs = 15_000

interface Failure {
  readonly message: string
}

function dataOf(event: Event): unknown {
  return JSON.parse((event as MessageEvent<string>).data)
}

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
      opened.addEventListener(name, (event) => {
        tellFailure(own, undefined)
        hear(dataOf(event) as never)
      })
    opened.addEventListener('failure', (event) => tellFailure(own, (dataOf(event) as Failure).message))
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
