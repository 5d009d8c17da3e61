/** The stat tile: one number with its name, in a place of fixed size. */

import type { ComponentChildren } from 'preact'

interface StatProps {
  readonly label: string
  /** Undefined: not known yet. */
  readonly value: string | undefined
  /** A second, smaller line. */
  readonly note?: ComponentChildren
  readonly href?: string
  readonly tone?: 'ink' | 'bad' | 'warn'
  readonly hint?: string
}

const tones = { ink: '', bad: 'text-bad', warn: 'text-warn' } as const

export function Stat({ label, value, note, href, tone = 'ink', hint }: StatProps) {
  const size = (value?.length ?? 0) > 7 ? 'text-lg' : 'text-xl'
  const shown = value ?? <span class="waiting mt-1.5 inline-block h-5 w-14" />
  return (
    <div class="panel relative min-w-0 px-3.5 py-2.5" title={hint}>
      <dt class="text-xs text-muted">{label}</dt>
      <dd>
        <span class={`block h-8 leading-8 font-semibold tracking-tight whitespace-nowrap ${size} ${tones[tone]}`}>
          {href === undefined ? (
            shown
          ) : (
            <a href={href} class="row-link font-semibold">
              {shown}
            </a>
          )}
        </span>
        <span class="block h-4.5 truncate text-xs text-muted">{note}</span>
      </dd>
    </div>
  )
}

/** Tiles side by side, as many as fit. */
export function Stats({ children }: { readonly children: ComponentChildren }) {
  return <dl class="grid grid-cols-[repeat(auto-fit,minmax(7.25rem,1fr))] gap-2.5">{children}</dl>
}
