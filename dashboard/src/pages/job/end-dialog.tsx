/** The end dialog: cancels a job, or ends its current run as failed, with a reason that its record keeps. */

import { useState } from 'preact/hooks'
import type { Changed } from '../../api/answers.js'
import { post } from '../../api/api-client.js'
import { ApiError, type FieldMistake, messageOf } from '../../api/api-error.js'
import { type JobName, jobAddress } from '../../api/api-path.js'
import { Field, mistakeAt, Select } from '../../parts/form-field.js'
import { Dialog, DialogButtons } from '../../parts/modal-dialog.js'
import { Button } from '../../parts/press-button.js'
import { say } from '../../state/toast-list.js'
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
  const [error, setError] = useState<unknown>()
  const mistakes: readonly FieldMistake[] = error instanceof ApiError ? error.fields : []
  const send = async () => {
    try {
      const { changed } = await post<Changed>(jobAddress(name, `/${how}`), {
        ...(reason !== '' && { reason }),
        ...(delay !== '' && { delay }),
        ...(last !== '' && { last: last === 'true' }),
      })
      if (changed > 0) say(how === 'cancel' ? cancelledWords(job) : 'The run was ended as failed.')
      else say('Nothing was changed: the job is in another state by now.', 'failed')
      onClose()
      await done()
    } catch (refusal) {
      setError(refusal)
    }
  }
  return (
    <Dialog title={how === 'cancel' ? 'Cancel this job?' : 'End this run as failed?'} onClose={onClose}>
      <form
        class="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
      >
        <p class="text-muted">{how === 'cancel' ? cancelWords(job) : failWords}</p>
        <Field
          label="Reason"
          value={reason}
          onInput={setReason}
          hint="Its record keeps it. Optional."
          mistake={mistakeAt(mistakes, 'reason')}
        />
        {how === 'fail' && (
          <>
            <div class="grid justify-items-start gap-1">
              <span class="text-sm font-medium">Then it goes</span>
              <Select label="Then it goes" value={last} choices={afterwards} onChange={setLast} />
            </div>
            {last !== 'true' && (
              <Field
                label="Due again after"
                value={delay}
                onInput={setDelay}
                placeholder="5m"
                hint="As 30s, 5m, 1h30m. Empty: at once."
                mistake={mistakeAt(mistakes, 'delay')}
              />
            )}
          </>
        )}
        {error !== undefined && mistakes.length === 0 && (
          <p class="text-bad" role="alert">
            {messageOf(error)}
          </p>
        )}
        <DialogButtons>
          <Button onPress={onClose}>{how === 'cancel' ? 'Keep it' : 'Let it run'}</Button>
          <Button type="submit" kind="danger">
            {how === 'cancel' ? 'Cancel job' : 'End run'}
          </Button>
        </DialogButtons>
      </form>
    </Dialog>
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
  'The claim of its worker ends now, and what that still reports of this run is refused. Its handler may go on until it hears of it.'
