/** The page address: the path below the window's root, with its filters; navigation does not reload the page. */

import { computed, signal } from '@preact/signals'
import { windowRoot } from '../api/api-path.js'

const rootUrl = new URL(windowRoot)

const current = signal(location.href)
const url = computed(() => new URL(current.value))

/** Below the root, as the browser writes it: `/queues/mail`. */
export const path = computed(() => `/${url.value.pathname.slice(rootUrl.pathname.length)}`)

/** The filters. */
export const query = computed(() => url.value.searchParams)

interface Going {
  /** Whether the back button skips the present page. Default false. */
  readonly replace?: boolean
  /** A value that this entry of the browser's history remembers. */
  readonly state?: unknown
}

/** Goes to an address below the root, such as `queues/mail?state=dead`. */
export function go(to: string, { replace = false, state = null }: Going = {}): void {
  const target = new URL(to, rootUrl)
  const hasMoved = target.pathname !== location.pathname
  history[replace ? 'replaceState' : 'pushState'](state, '', target)
  current.value = target.href
  if (hasMoved) scrollTo(0, 0)
}

/** Sets filters; undefined or an empty text removes one. The others stay. */
export function setQuery(values: Readonly<Record<string, string | undefined>>, going: Going = { replace: true }): void {
  const next = new URLSearchParams(query.value)
  for (const [name, value] of Object.entries(values))
    if (value === undefined || value === '') next.delete(name)
    else next.set(name, value)
  const text = next.toString()
  go(`.${path.value}${text === '' ? '' : `?${text}`}`, going)
}

/** Links are plain anchors, relative to the window: a click on one below the root is handled here. */
function followed(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return
  const link = event.target instanceof Element ? event.target.closest('a') : null
  if (link === null || link.target !== '' || link.hasAttribute('download') || !link.href.startsWith(windowRoot)) return
  if (link.href.startsWith(`${windowRoot}api/`)) return
  event.preventDefault()
  go(link.href)
}

/** Starts handling links and the back button. */
export function startNavigation(): void {
  // Relative links stay relative, however deep the page was opened.
  const base = document.querySelector('base')
  if (base !== null) base.href = windowRoot
  addEventListener('popstate', () => {
    current.value = location.href
  })
  document.addEventListener('click', followed)
}
