/** The job timeline: the steps of a job as a line of dots, and the parts of its life so far as a bar. */

import { Moment, now } from '../../parts/moment-text.js'
import { safeText, shortText } from '../../words/safe-text.js'
import type { JobDetail } from './job-detail.js'
import { spansOf, spanWords, stepsOf, type TimelineSpan, type TimelineStep } from './timeline-steps.js'

const dots: Readonly<Record<TimelineStep['tone'], string>> = {
  plain: 'border-muted bg-muted',
  accent: 'border-accent bg-accent',
  good: 'border-good bg-good',
  warn: 'border-warn bg-warn',
  bad: 'border-bad bg-bad',
}

export function JobTimeline({ job }: { readonly job: JobDetail }) {
  const steps = stepsOf(job, now.value)
  const spans = spansOf(job, now.value)
  return (
    <section class="panel p-4" aria-label="Timeline">
      <ol class="grid gap-y-3 md:auto-cols-fr md:grid-flow-col">
        {steps.map((step, i) => (
          <Step
            key={step.name}
            step={step}
            isLast={i === steps.length - 1}
            isOnward={steps[i + 1]?.isReached === true}
          />
        ))}
      </ol>
      {spans.length > 0 && <SpanBar spans={spans} />}
    </section>
  )
}

interface StepProps {
  readonly step: TimelineStep
  readonly isLast: boolean
  /** Whether the next step was reached too. */
  readonly isOnward: boolean
}

function Step({ step: { name, at, note, isReached, tone }, isLast, isOnward }: StepProps) {
  return (
    <li class="relative flex gap-3 md:block" aria-current={isReached && !isOnward ? 'step' : undefined}>
      {!isLast && (
        <span
          aria-hidden="true"
          class={`absolute top-4 bottom-[-0.9rem] left-[5px] border-s-2 md:top-[5px] md:right-0 md:bottom-auto md:left-4 md:border-s-0 md:border-t-2 ${isOnward ? 'border-muted' : 'border-dashed border-line'}`}
        />
      )}
      <span
        aria-hidden="true"
        class={`mt-1 size-3 shrink-0 rounded-full border-2 md:mt-0 md:mb-2 md:block ${isReached ? dots[tone] : 'border-edge bg-card'}`}
      />
      <div class="min-w-0 md:pe-3">
        <div class={isReached ? 'font-medium' : 'text-muted'}>{name}</div>
        {at !== undefined && (
          <div class="text-sm text-muted">
            <Moment at={at} />
          </div>
        )}
        {note !== undefined && <div class="text-sm wrap-anywhere text-muted">{shortText(safeText(note), 120)}</div>}
      </div>
    </li>
  )
}

const fills: Readonly<Record<TimelineSpan['name'], string>> = {
  'earlier attempts': 'bg-warn',
  'put off': 'bg-line',
  delayed: 'bg-line',
  waited: 'bg-edge',
  'waited and ran': 'bg-edge',
  ran: 'bg-accent',
}

/** A long part is wide; a part without length is still visible. */
function SpanBar({ spans }: { readonly spans: readonly TimelineSpan[] }) {
  return (
    <div class="mt-4 border-t border-line pt-3">
      <div class="flex h-2 gap-px overflow-hidden rounded-full" aria-hidden="true">
        {spans.map(({ name, ms }) => (
          <div key={name} class={`min-w-1 ${fills[name]}`} style={{ flexGrow: ms, flexBasis: 0 }} />
        ))}
      </div>
      <ul class="mt-2 flex flex-wrap gap-x-4 gap-y-1 text-sm text-muted">
        {spans.map((span) => (
          <li key={span.name} class="flex items-center gap-1.5">
            <span aria-hidden="true" class={`size-2 rounded-full ${fills[span.name]}`} />
            {spanWords(span)}
          </li>
        ))}
      </ul>
    </div>
  )
}
