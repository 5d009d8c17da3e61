/** The state badge: a state in words, with a sign and a colour of its own. */

import type { ComponentChildren } from 'preact'
import { isUnserved, type JobState, type QueueRow } from '../api/answers.js'

type Tone = 'plain' | 'accent' | 'good' | 'warn' | 'bad'

/** The classes of a tone. */
export const tones: Readonly<Record<Tone, string>> = {
  plain: 'border-line text-muted',
  accent: 'border-transparent bg-wash text-accent',
  good: 'border-line text-good',
  warn: 'border-transparent bg-warn-wash text-warn',
  bad: 'border-transparent bg-bad-wash text-bad',
}

interface BadgeProps {
  readonly tone?: Tone
  readonly sign?: string
  readonly hint?: string
  readonly children: ComponentChildren
}

export function Badge({ tone = 'plain', sign, hint, children }: BadgeProps) {
  return (
    <span
      class={`inline-flex items-center gap-1 rounded-full border px-1.5 text-xs leading-5 whitespace-nowrap ${tones[tone]}`}
      title={hint}
    >
      {sign !== undefined && <span aria-hidden="true">{sign}</span>}
      {children}
    </span>
  )
}

/** `\ufe0e`: as text, not as a picture. */
const signs: Readonly<Record<JobState, readonly [tone: Tone, sign: string]>> = {
  waiting: ['plain', '⋯'],
  scheduled: ['plain', '◷'],
  ready: ['accent', '○'],
  running: ['accent', '▶\ufe0e'],
  completed: ['good', '✓'],
  dead: ['bad', '✕'],
  cancelled: ['plain', '⊘'],
}

/** The tone and the sign of a state. */
export function signOf(state: JobState | undefined): readonly [tone: Tone, sign: string] {
  return (state && signs[state]) ?? ['plain', '?']
}

export function StateBadge({ state }: { readonly state: JobState }) {
  const [tone, sign] = signOf(state)
  return (
    <Badge tone={tone} sign={sign}>
      {state}
    </Badge>
  )
}

/** Badges for unusual states of a queue. */
export function QueueBadges({ queue }: { readonly queue: QueueRow }) {
  const { paused, draining, damaged, resharding, declared, kind } = queue
  return (
    <>
      {damaged !== undefined && (
        <Badge tone="bad" sign="!" hint={damaged}>
          damaged
        </Badge>
      )}
      {paused && (
        <Badge tone="warn" sign="‖" hint="Starts no jobs until it is resumed">
          paused
        </Badge>
      )}
      {draining && (
        <Badge tone="warn" sign="↓" hint="Takes no new jobs until it is resumed">
          draining
        </Badge>
      )}
      {isUnserved(queue) && (
        <Badge tone="warn" sign="∅" hint="Jobs wait, and no worker takes jobs of this queue">
          no worker
        </Badge>
      )}
      {resharding !== undefined && (
        <Badge tone="warn" sign="⇄" hint={`Starts no jobs until all have moved to ${resharding} shards`}>
          resharding
        </Badge>
      )}
      {kind === 'ordered' && <Badge hint="One job of an id runs at a time">ordered</Badge>}
      {!declared && <Badge hint="Stored, but this mill does not declare it">undeclared</Badge>}
    </>
  )
}
