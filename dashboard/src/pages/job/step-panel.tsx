/** The step panel: what the runs of a job have reached, the signals that it got, and the one that it waits for. */

import type { Changed, JobStep } from '../../api/answers.js'
import { mayChange, post } from '../../api/api-client.js'
import { type JobName, jobAddress } from '../../api/api-path.js'
import { JsonView } from '../../parts/json-view.js'
import { Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { Panel } from '../../parts/page-head.js'
import { Button } from '../../parts/press-button.js'
import { askToConfirm } from '../../state/asked-action.js'
import { say } from '../../state/toast-list.js'
import { countOf } from '../../words/count-words.js'
import { safeText } from '../../words/safe-text.js'
import type { JobDetail } from './job-detail.js'

interface StepsProps {
  readonly job: JobDetail
  readonly name: JobName
  /** Whether nothing is kept of it any more. */
  readonly isGone: boolean
  readonly done: () => unknown
}

const kindWords: Readonly<Record<JobStep['kind'], string>> = {
  step: 'step',
  sleep: 'sleep',
  signal: 'signal',
  timeout: 'no signal came in time',
}

export function StepPanel({ job: { steps = [] }, name, isGone, done }: StepsProps) {
  if (steps.length === 0) return null
  const mayForget = mayChange.value && !isGone
  return (
    <Panel
      title="Steps and signals"
      aside={<span class="text-sm text-muted">{countOf(steps.length, 'entry', 'entries')}, in their order</span>}
    >
      <ol class="grid gap-3">
        {steps.map((step) => (
          <li key={`${step.kind} ${step.name}`} class="grid gap-1 text-sm">
            <div class="flex flex-wrap items-center justify-between gap-x-3 gap-y-1">
              <span class="min-w-0 wrap-anywhere">
                <Name text={step.name} most={60} /> <span class="text-muted">{kindWords[step.kind]}</span>
              </span>
              <span class="flex items-center gap-3 text-muted">
                <Moment at={step.at} />
                {mayForget && (
                  <Button
                    kind="quiet"
                    label={`Forget ${safeText(step.name)}`}
                    onPress={() => askToForget(step, name, done)}
                  >
                    Forget
                  </Button>
                )}
              </span>
            </div>
            {step.until !== undefined && (
              <span class="text-muted">
                until <Moment at={step.until} />
              </span>
            )}
            {step.value !== undefined && <JsonView value={step.value} label={`value of ${safeText(step.name)}`} />}
          </li>
        ))}
      </ol>
    </Panel>
  )
}

function askToForget({ name: step, kind }: JobStep, name: JobName, done: () => unknown): void {
  const signal = kind === 'signal' || kind === 'timeout'
  const nextRun = signal ? 'waits for it anew, and it may be sent again' : 'makes it again'
  askToConfirm({
    title: `Forget the ${signal ? 'signal' : kind} ${safeText(step)}?`,
    text: `The next run of the job ${nextRun}. A run that is under way has read it already.`,
    verb: 'Forget',
    isDangerous: true,
    act: () => post<Changed>(jobAddress(name, '/forget-step'), { step, signal }),
    done: (changed) => {
      if (changed > 0) say(`It is forgotten: the next run ${nextRun}.`)
      else say('Nothing was changed: the job does not have it any more.', 'failed')
      void done()
    },
  })
}
