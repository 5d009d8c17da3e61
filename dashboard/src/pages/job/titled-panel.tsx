/** The titled panel: a part of a page on a card, with its heading and its actions next to it. */

import type { ComponentChildren } from 'preact'

interface TitledPanelProps {
  readonly title: string
  readonly children: ComponentChildren
  /** Shown next to the heading. */
  readonly aside?: ComponentChildren
}

export function Panel({ title, children, aside }: TitledPanelProps) {
  return (
    <section class="panel grid content-start gap-2.5 p-4" aria-label={title}>
      <div class="flex min-h-7 flex-wrap items-center justify-between gap-2">
        <h2 class="font-semibold">{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  )
}
