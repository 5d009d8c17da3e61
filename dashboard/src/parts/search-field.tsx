/** The search field: a filter of the loaded rows, kept in the address as `q`; the key `/` leads to it. */

import { query, setQuery } from '../state/page-address.js'

interface SearchProps {
  /** The label for screen readers. */
  readonly label: string
  readonly placeholder: string
}

export function SearchField({ label, placeholder }: SearchProps) {
  return (
    <input
      type="search"
      class="field sm:max-w-64"
      aria-label={label}
      placeholder={placeholder}
      value={query.value.get('q') ?? ''}
      onInput={(event) => setQuery({ q: event.currentTarget.value })}
    />
  )
}
