/** The page turner: first, previous and next of a list with cursors; and the actions on chosen rows. */

import type { ComponentChildren } from 'preact'
import type { CursorPages } from '../state/cursor-pages.js'
import type { RowSelection } from '../state/row-selection.js'
import { countOf } from '../words/count-words.js'
import { Button } from './press-button.js'

interface TurnerProps {
  readonly pages: Pick<CursorPages<unknown>, 'isFirst' | 'hasNext' | 'first' | 'next' | 'previous'>
  /** Shown next to it: the number of rows. */
  readonly children?: ComponentChildren
}

export function PageTurner({ pages: { isFirst, hasNext, first, next, previous }, children }: TurnerProps) {
  return (
    <nav class="mt-3 flex min-h-8 flex-wrap items-center gap-2" aria-label="Pages">
      <Button onPress={first} isDisabled={isFirst}>
        First
      </Button>
      <Button onPress={previous} isDisabled={isFirst}>
        Previous
      </Button>
      <Button onPress={next} isDisabled={!hasNext}>
        Next
      </Button>
      <span class="ms-auto text-sm text-muted">{children}</span>
    </nav>
  )
}

interface SelectionProps {
  readonly selection: RowSelection
  /** Buttons. */
  readonly children: ComponentChildren
}

/** It always takes its place, so that choosing a row moves nothing. */
export function SelectionBar({ selection, children }: SelectionProps) {
  const { size } = selection.keys
  return (
    <div class="mb-2 flex min-h-8 flex-wrap items-center gap-2" aria-live="polite">
      {size > 0 && (
        <>
          <span class="text-sm font-medium">{countOf(size, 'row')} selected</span>
          {children}
          <Button kind="quiet" onPress={() => selection.set([])}>
            Clear selection
          </Button>
        </>
      )}
    </div>
  )
}
