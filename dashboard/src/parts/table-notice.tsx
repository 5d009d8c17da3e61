/** The table notice: shown in place of rows if there are none, or while they load, or if loading failed. */

import type { ComponentChildren } from 'preact'
import { Button } from './press-button.js'

interface NoticeProps {
  readonly children?: ComponentChildren
  readonly error?: Error
  readonly onRetry?: (() => void) | undefined
  /** Whether old rows are shown above an error. */
  readonly hasRows?: boolean
}

export function TableNotice({ children, error, onRetry, hasRows = false }: NoticeProps) {
  return (
    <div
      class={`grid place-items-center gap-3 border-t border-line px-4 text-center ${hasRows ? 'py-3' : 'min-h-48 py-8'}`}
    >
      {error === undefined ? (
        <div class="grid max-w-prose justify-items-center gap-2 text-muted">{children}</div>
      ) : (
        <p role="alert" class="max-w-prose wrap-anywhere text-bad">
          {error.message}
        </p>
      )}
      {error !== undefined && onRetry && <Button onPress={onRetry}>Try again</Button>}
    </div>
  )
}

/** As high as the rows that will replace it. */
export function WaitingRows({ count = 8 }: { readonly count?: number }) {
  return (
    <div aria-hidden="true">
      {Array.from({ length: count }, (_, i) => (
        <div key={i} class="flex h-10 items-center gap-4 border-t border-line px-3.5">
          <div class="waiting h-3.5 w-2/5" />
          <div class="waiting h-3.5 w-1/5" />
        </div>
      ))}
    </div>
  )
}
