/** The detail list: names with their values, two columns wide; names without a value are left out. */

import type { ComponentChildren } from 'preact'

interface DetailsProps {
  readonly details: readonly (readonly [name: string, value: ComponentChildren])[]
}

export function Details({ details }: DetailsProps) {
  return (
    <dl class="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-5 gap-y-1">
      {details.map(
        ([name, value]) =>
          value !== undefined && (
            <>
              <dt class="text-muted">{name}</dt>
              <dd class="wrap-anywhere">{value}</dd>
            </>
          ),
      )}
    </dl>
  )
}
