/** The late part: a page, or a part of one, whose code is loaded when it is first shown. */

import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { TableNotice, WaitingRows } from './table-notice.js'

/** Its code is loaded when it is first shown. */
export interface LatePart<Props> {
  (props: Props): ComponentChildren
  /** Begins to load the code, before it is shown. Never rejects. */
  ask(): Promise<void>
}

/** `load` is called once, and again after it has failed. */
export function latePart<Props extends object>(
  load: () => Promise<(props: Props) => ComponentChildren>,
): LatePart<Props> {
  const found = signal<{ readonly part: (props: Props) => ComponentChildren } | undefined>(undefined)
  const failure = signal<Error | undefined>(undefined)
  let loading: Promise<void> | undefined
  const ask = (): Promise<void> => {
    loading ??= load()
      .then((part) => {
        found.value = { part }
        failure.value = undefined
      })
      .catch(() => {
        loading = undefined
        failure.value = new Error('The code of this part could not be loaded. After an update, load the page anew.')
      })
    return loading
  }
  const shown = (props: Props) => {
    useLayoutEffect(() => void ask(), [])
    if (found.value !== undefined) {
      const { part: Part } = found.value
      return <Part {...props} />
    }
    return failure.value === undefined ? (
      <WaitingRows />
    ) : (
      <TableNotice error={failure.value} onRetry={() => void ask()} />
    )
  }
  return Object.assign(shown, { ask })
}
