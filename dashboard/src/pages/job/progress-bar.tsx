/** The progress bar: the reported progress of a job, with its note. */

import { safeText } from '../../words/safe-text.js'

interface ProgressProps {
  readonly progress: { readonly fraction: number; readonly note?: string }
  readonly isLive: boolean
}

export function ProgressBar({ progress: { fraction, note }, isLive }: ProgressProps) {
  const share = Math.min(1, Math.max(0, fraction))
  const percent = `${Math.round(share * 100)} %`
  return (
    <section class="panel p-4" aria-label="Progress">
      <div class="mb-1.5 flex justify-between gap-3">
        <span class="min-w-0 wrap-anywhere">{note === undefined ? 'Progress' : safeText(note)}</span>
        <span class="font-medium whitespace-nowrap">{percent}</span>
      </div>
      <div
        role="progressbar"
        aria-label="Progress"
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={0}
        aria-valuemax={100}
        class="h-2 overflow-hidden rounded-full bg-sunk ring-1 ring-line ring-inset"
      >
        <div
          class={`meter-fill h-full origin-left transition-transform ${isLive ? 'bg-accent' : 'bg-edge'}`}
          style={{ transform: `scaleX(${share})` }}
        />
      </div>
    </section>
  )
}
