/** The toast stack: messages on finished and failed actions, in the corner; screen readers announce them. */

import { dismiss, toasts } from '../state/toast-list.js'

export function ToastStack() {
  return (
    <div
      aria-live="polite"
      class="pointer-events-none fixed inset-x-4 bottom-18 z-20 grid justify-items-end gap-2 md:bottom-4"
    >
      {toasts.value.map(({ id, text, kind }) => (
        <div
          key={id}
          class={`panel pointer-events-auto flex max-w-md items-start gap-2 border-s-4 py-2 ps-3 pe-1 toast ${kind === 'failed' ? 'border-s-bad' : 'border-s-good'}`}
        >
          <p class="py-0.5 wrap-anywhere">{text}</p>
          <button
            type="button"
            aria-label="Dismiss"
            class="grid size-7 shrink-0 place-items-center rounded text-muted hover:text-ink"
            onClick={() => dismiss(id)}
          >
            <span aria-hidden="true">✕</span>
          </button>
        </div>
      ))}
    </div>
  )
}
