/**
 * The name text: an id or a name from elsewhere, with all hidden characters shown, shortened to fit, and easy to copy.
 */

import { say } from '../state/toast-list.js'
import { safeText, shortText } from '../words/safe-text.js'

interface NameProps {
  readonly text: string
  /** The most characters; the middle is left out. Default 40. */
  readonly most?: number
  /** Whether a button copies it. Default false. */
  readonly canCopy?: boolean
  /** Whether it is an id, in a monospaced font. Default false. */
  readonly isId?: boolean
}

export function Name({ text, most = 40, canCopy = false, isId = false }: NameProps) {
  const safe = safeText(text)
  const shown = shortText(safe, most)
  const name = (
    <bdi class={isId ? 'font-mono text-[0.92em]' : undefined} title={shown === text ? undefined : safe}>
      {shown}
    </bdi>
  )
  if (!canCopy) return name
  return (
    <span class="inline-flex items-center gap-1">
      {name}
      <CopyButton text={text} what={safe} />
    </span>
  )
}

export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <button
      type="button"
      class="grid size-6 place-items-center rounded text-muted hover:bg-sunk hover:text-ink"
      aria-label={`Copy ${shortText(what, 60)}`}
      title="Copy"
      onClick={() => void copy(text)}
    >
      <svg viewBox="0 0 16 16" class="size-3.5" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true">
        <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
        <path d="M10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2" />
      </svg>
    </button>
  )
}

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    say('Copied.')
  } catch {
    say('This browser lets a page copy only over https or from this machine.', 'failed')
  }
}
