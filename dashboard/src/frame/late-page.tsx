/** The late page: a page whose code is loaded when it is first shown. */

import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { TableNotice, WaitingRows } from '../parts/table-notice.js'

export interface LatePage<Props> {
  (props: Props): ComponentChildren
  /** Begins to load the code, before the page is shown. Never rejects. */
  ask(): Promise<void>
}

/** `load` is called once, and again after it has failed. */
export function latePage<Props extends object>(
  load: () => Promise<(props: Props) => ComponentChildren>,
): LatePage<Props> {
  const found = signal<{ readonly page: (props: Props) => ComponentChildren } | undefined>(undefined)
  const failure = signal<Error | undefined>(undefined)
  let loading: Promise<void> | undefined
  const ask = (): Promise<void> => {
    loading ??= load()
      .then((page) => {
        found.value = { page }
        failure.value = undefined
      })
      .catch(() => {
        loading = undefined
        failure.value = new Error('The code of this page could not be loaded. After an update, load the page anew.')
      })
    return loading
  }
  const shown = (props: Props) => {
    useLayoutEffect(() => void ask(), [])
    if (found.value !== undefined) {
      const { page: Page } = found.value
      return <Page {...props} />
    }
    return failure.value === undefined ? (
      <WaitingRows />
    ) : (
      <TableNotice error={failure.value} onRetry={() => void ask()} />
    )
  }
  return Object.assign(shown, { ask })
}
