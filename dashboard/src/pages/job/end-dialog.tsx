/** The end dialog: cancels a job, or ends its current run as failed, with a reason that its record keeps. */

import { useState } from 'preact/hooks'
import { post } from '../../api/api-client.js'
import { type JobName, jobAddress } from '../../api/api-path.js'
import { Field, Select } from '../../parts/form-field.js'
import { ActDialog } from './act-dialog.js'
import type { JobDetail } from './job-detail.js'

interface EndProps {
  readonly how: 'cancel' | 'fail'
  readonly job: JobDetail
  readonly name: JobName
  readonly onClose: () => void
  readonly done: () => unknown
}

const afterwards = [
  ['', 'again, while it has attempts left'],
  ['false', 'again in any case'],
  ['true', 'to the morgue'],
] as const

export function EndDialog({ how, job, name, onClose, done }: EndProps) {
  const [reason, setReason] = useState('')
  const [delay, setDelay] = useState('')
  const [last, setLast] = useState('')
  const isCancel = how === 'cancel'
  const body = {
    ...(reason !== '' && { reason }),
    ...(delay !== '' && { delay }),
    ...(last !== '' && { last: last === 'true' }),
  }
  return (
    <ActDialog
      title={isCancel ? 'Cancel this job?' : 'End this run as failed?'}
      leave={isCancel ? 'Keep it' : 'Let it run'}
      verb={isCancel ? 'Cancel job' : 'End run'}
      isDangerous
      act={() => post(jobAddress(name, `/${how}`), body)}
      done={isCancel ? cancelledWords(job) : 'The run was ended as failed.'}
      onDone={done}
      onClose={onClose}
    >
      {(mistakeOf) => (
        <>
          <p class="text-muted">{isCancel ? cancelWords(job) : failWords}</p>
          <Field
            label="Reason"
            value={reason}
            onInput={setReason}
            hint="Its record keeps it. Optional."
            mistake={mistakeOf('reason')}
          />
          {!isCancel && (
            <div class="grid justify-items-start gap-1">
              <span class="text-sm font-medium">Then it goes</span>
              <Select label="Then it goes" value={last} choices={afterwards} onChange={setLast} />
            </div>
          )}
          {!isCancel && last !== 'true' && (
            <Field
              label="Due again after"
              value={delay}
              onInput={setDelay}
              placeholder="5m"
              hint="As 30s, 5m, 1h30m. Empty: at once."
              mistake={mistakeOf('delay')}
            />
          )}
        </>
      )}
    </ActDialog>
  )
}

function cancelWords({ state }: JobDetail): string {
  return state === 'running'
    ? 'Its handler is told at the next beat of its lease, and ends as soon as it listens to its signal.'
    : 'It never runs.'
}

function cancelledWords({ state }: JobDetail): string {
  return state === 'running' ? 'The job will be told at its next beat.' : 'The job was cancelled.'
}

const failWords =
  'The claim of its worker ends now, and later reports of this run are refused. Its handler may go on until it learns of this.'
