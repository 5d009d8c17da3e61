/** The cursor pages: a list of which only one page is loaded; the address says which. */

import { useLayoutEffect, useRef } from 'preact/hooks'
import type { ListPage } from '../api/answers.js'
import { go, path, query, setQuery } from './page-address.js'
import { type Resource, useResource } from './resource.js'

export interface CursorPages<Item, Answer extends ListPage<Item> = ListPage<Item>> {
  readonly page: Resource<Answer>
  /** Changes once the rows of another page are loaded: a table with this key begins at its top. */
  readonly key: string
  readonly isFirst: boolean
  readonly hasNext: boolean
  first(): void
  next(): void
  /** The page before, if it is known; otherwise the first. */
  previous(): void
}

/** The cursors of the pages before this one; the first page has none. */
function trail(): readonly (string | null)[] {
  const state = history.state as { readonly trail?: readonly (string | null)[] } | null
  return state?.trail ?? []
}

/** Loads the page of the address: `cursor` is undefined for the first. `deps`: other values on which it depends. */
export function usePages<Item, Answer extends ListPage<Item> = ListPage<Item>>(
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<Answer>,
  deps: readonly unknown[],
): CursorPages<Item, Answer> {
  const cursor = query.value.get('cursor') ?? undefined
  const page = useResource<Answer & { readonly key: string }>(
    async (signal) => ({ ...(await load(cursor, signal)), key: cursor ?? '' }),
    [cursor, ...deps],
  )
  const { cursor: following, key = '' } = page.data.value ?? {}
  const isTurning = useRef(false)
  // Not before the new rows have come: the old ones would be drawn at the top for nothing.
  useLayoutEffect(() => {
    if (isTurning.current) document.querySelector('#main')?.scrollIntoView()
    isTurning.current = false
  }, [key])
  const turn = (to: string | undefined, before: readonly (string | null)[]) => {
    isTurning.current = true
    setQuery({ cursor: to }, { state: { trail: before } })
  }
  return {
    page,
    key,
    isFirst: cursor === undefined,
    hasNext: following !== undefined,
    first: () => turn(undefined, []),
    next: () => {
      // A second press before the page has come goes one page on, not two.
      if (!page.loading.value) turn(following, [...trail(), cursor ?? null])
    },
    previous: () => turn(trail().at(-1) ?? undefined, trail().slice(0, -1)),
  }
}

/** Sets filters of a list and goes to its first page. */
export function filterList(values: Readonly<Record<string, string | undefined>>): void {
  setQuery({ ...values, cursor: undefined })
}

/** The same list without any filter. */
export function clearFilters(): void {
  go(`.${path.value}`, { replace: true })
}
