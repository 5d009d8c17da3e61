/** The page head: the title of a page, the way to it, and its actions; and the headings of the parts below. */

import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { safeText, shortText } from '../words/safe-text.js'

interface HeadProps {
  /** Also the title of the document. */
  readonly title: string
  /** Replaces the title if it is more than text. */
  readonly children?: ComponentChildren
  /** The way here, each step with its link. */
  readonly crumbs?: readonly { readonly text: string; readonly href: string }[]
  /** Badges after the title. */
  readonly badges?: ComponentChildren
  readonly actions?: ComponentChildren
}

export function PageHead({ title, children, crumbs = [], badges, actions }: HeadProps) {
  const safe = shortText(safeText(title), 80)
  useEffect(() => {
    document.title = `${safe} · Millrace`
  }, [safe])
  return (
    <div class="mb-4">
      {crumbs.length > 0 && (
        <nav aria-label="The way here" class="mb-0.5 flex flex-wrap gap-1.5 text-sm text-muted">
          {crumbs.map(({ text, href }, i) => (
            <span key={href}>
              {i > 0 && <span aria-hidden="true">/ </span>}
              <a class="hover:text-ink hover:underline" href={href}>
                {shortText(safeText(text), 40)}
              </a>
            </span>
          ))}
        </nav>
      )}
      <div class="flex min-h-9 flex-wrap items-center gap-x-4 gap-y-2">
        <h1 class="text-xl font-semibold tracking-tight wrap-anywhere">{children ?? safe}</h1>
        {badges && <span class="flex flex-wrap gap-1.5">{badges}</span>}
        {actions && <div class="flex flex-wrap gap-2 sm:ms-auto">{actions}</div>}
      </div>
    </div>
  )
}

interface SectionProps {
  readonly title: string
  readonly children: ComponentChildren
  readonly actions?: ComponentChildren
}

/** A part of a page under a heading of its own. */
export function Section({ title, children, actions }: SectionProps) {
  return (
    <section class="mt-6" aria-label={title}>
      <div class="mb-2 flex min-h-8 flex-wrap items-center gap-3">
        <h2 class="text-lg font-semibold tracking-tight">{title}</h2>
        {actions && <div class="ms-auto flex flex-wrap items-center gap-2">{actions}</div>}
      </div>
      {children}
    </section>
  )
}

interface TitledPanelProps {
  readonly title: string
  readonly children: ComponentChildren
  /** Shown next to the heading. */
  readonly aside?: ComponentChildren
}

/** A part of a page on a card, with its heading and its actions next to it. */
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
