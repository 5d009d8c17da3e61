/** The key bindings: the actions of keys on every page, unless a text is being typed or a dialog is open. */

import { signal } from '@preact/signals'
import { go } from './page-address.js'

export interface Destination {
  /** The key after `g`. */
  readonly key: string
  readonly to: string
  readonly title: string
  /** The feature of the store that it needs. */
  readonly feature?: 'workers' | 'throttles' | 'schedules'
}

export const destinations: readonly Destination[] = [
  { key: 'o', to: './', title: 'Overview' },
  { key: 'm', to: 'morgue', title: 'Morgue' },
  { key: 'w', to: 'workers', title: 'Workers', feature: 'workers' },
  { key: 't', to: 'throttles', title: 'Throttles', feature: 'throttles' },
  { key: 's', to: 'schedules', title: 'Schedules', feature: 'schedules' },
]

export const isHelpOpen = signal(false)

/** How long a `g` waits for the next key. */
const chordMs = 1_500

let goUntil = 0

/** Whether keys are text there, or have another meaning. */
function isElsewhere(event: KeyboardEvent): boolean {
  const { target } = event
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return true
  if (document.querySelector('dialog[open]') !== null) return true
  return (
    target instanceof HTMLElement &&
    target.closest('input:not([type=checkbox]), textarea, select, [role=menu]') !== null
  )
}

/** The action of a key; undefined: none here. */
function actOf({ key, target }: KeyboardEvent): (() => unknown) | undefined {
  if (Date.now() < goUntil) {
    goUntil = 0
    const destination = destinations.find((one) => one.key === key)
    if (destination !== undefined) return () => go(destination.to)
  }
  if (key === 'g') return () => (goUntil = Date.now() + chordMs)
  if (key === '?') return () => (isHelpOpen.value = true)
  if (key === '/') return openSearch
  if (key === 'j') return () => focusRow(1)
  if (key === 'k') return () => focusRow(-1)
  if (key === 'x') return pressIn('input[type=checkbox]')
  return key === 'Enter' && target === focusedRow() ? pressIn('a') : undefined
}

function pressed(event: KeyboardEvent): void {
  const act = isElsewhere(event) ? undefined : actOf(event)
  if (act === undefined) return
  event.preventDefault()
  act()
}

function openSearch(): void {
  const fields = [...document.querySelectorAll<HTMLInputElement>('input[type=search]')]
  const shown = fields.filter((one) => one.checkVisibility())
  // The filter of the page comes before the search of the frame.
  const field = shown.find((one) => one.closest('main')) ?? shown[0]
  if (field === undefined) go('search')
  else field.focus()
}

function focusedRow(): Element | null {
  return document.activeElement?.closest('[data-row]') ?? null
}

function focusRow(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
  const at = rows.findIndex((row) => row.matches(':focus-within'))
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, at + step))
  rows[next]?.focus()
  rows[next]?.scrollIntoView({ block: 'nearest' })
}

/** Presses the first matching element of the focused row. */
function pressIn(selector: string): (() => void) | undefined {
  const element = focusedRow()?.querySelector<HTMLElement>(selector)
  return element ? () => element.click() : undefined
}

export function startKeys(): void {
  document.addEventListener('keydown', pressed)
}
