/** The toasts: short messages on finished actions, which disappear by themselves. */

import { signal } from '@preact/signals'
import { messageOf } from '../api/api-error.js'

interface Toast {
  readonly id: number
  readonly text: string
  readonly kind: 'done' | 'failed'
}

const doneMs = 6_000
const failedMs = 15_000
const most = 5

export const toasts = signal<readonly Toast[]>([])

let lastId = 0

/** Shows a message. Failures stay longer. */
export function say(text: string, kind: Toast['kind'] = 'done'): void {
  lastId += 1
  const id = lastId
  toasts.value = [...toasts.value.slice(1 - most), { id, text, kind }]
  setTimeout(() => dismiss(id), kind === 'done' ? doneMs : failedMs)
}

export function sayError(error: unknown): void {
  say(messageOf(error), 'failed')
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id)
}
