/** The resource: data loaded from the API, with the state of its loading. Old data stays while it loads again. */

import { batch, type ReadonlySignal, signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { isAborted } from '../api/api-error.js'

export interface Resource<T> {
  readonly data: ReadonlySignal<T | undefined>
  /** The error of the last attempt; undefined if that succeeded. */
  readonly error: ReadonlySignal<Error | undefined>
  readonly loading: ReadonlySignal<boolean>
  /** When the data came, in ms since 1970. */
  readonly at: ReadonlySignal<number | undefined>
  /** Loads again; aborts a loading under way. Never rejects. */
  refresh(): Promise<void>
  /** Takes data that came in another way, such as a stream. */
  set(data: T): void
  /** Aborts a loading under way. */
  close(): void
}

export type Load<T> = (signal: AbortSignal) => Promise<T>

/** Loads nothing before the first `refresh()`. Each refresh calls `load`. */
export function resource<T>(load: Load<T>): Resource<T> {
  const data = signal<T | undefined>(undefined)
  const error = signal<Error | undefined>(undefined)
  const loading = signal(true)
  const at = signal<number | undefined>(undefined)
  let running = new AbortController()

  const set = (value: T) =>
    batch(() => {
      data.value = value
      error.value = undefined
      loading.value = false
      at.value = Date.now()
    })
  const refresh = async () => {
    running.abort()
    const own = new AbortController()
    running = own
    loading.value = true
    try {
      const value = await load(own.signal)
      if (!own.signal.aborted) set(value)
    } catch (reason) {
      if (own.signal.aborted || isAborted(reason)) return
      batch(() => {
        error.value = reason instanceof Error ? reason : new Error(String(reason))
        loading.value = false
      })
    }
  }
  return { data, error, loading, at, refresh, set, close: () => running.abort() }
}

interface ResourceOptions {
  /** Loads again after this long, while the page is visible. Default: never. */
  readonly everyMs?: number
}

/** A resource of a component: loaded when it appears and whenever one of `deps` has changed. */
export function useResource<T>(
  load: Load<T>,
  deps: readonly unknown[],
  { everyMs }: ResourceOptions = {},
): Resource<T> {
  const latest = useLatest(load)
  const [own] = useState(() => resource<T>((signal) => latest.load(signal)))
  // Requested before the frame is painted, which takes time.
  useLayoutEffect(() => {
    void own.refresh()
    return own.close
  }, deps)
  useEffect(() => {
    if (everyMs === undefined) return
    const timer = setInterval(() => document.hidden || void own.refresh(), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return own
}

function useLatest<T>(load: Load<T>): { load: Load<T> } {
  const [latest] = useState({ load })
  latest.load = load
  return latest
}
