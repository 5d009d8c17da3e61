/** The row selection: the chosen rows of the present page, by their keys. */

import { useSignal } from '@preact/signals'

export interface RowSelection {
  readonly keys: ReadonlySet<string>
  toggle(key: string): void
  /** Chooses exactly these. */
  set(keys: readonly string[]): void
}

export function useSelection(): RowSelection {
  const chosen = useSignal<ReadonlySet<string>>(new Set())
  return {
    get keys() {
      return chosen.value
    },
    toggle: (key) => {
      const next = new Set(chosen.value)
      if (!next.delete(key)) next.add(key)
      chosen.value = next
    },
    set: (keys) => {
      chosen.value = new Set(keys)
    },
  }
}
