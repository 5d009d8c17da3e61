/** The reschedule dialog: gives a job that waits another priority, another due time, or both. */

import { useState } from 'preact/hooks'
import type { Changed } from '../../api/answers.js'
import { post } from '../../api/api-client.js'
import { ApiError, type FieldMistake, messageOf } from '../../api/api-error.js'
import { type JobName, jobAddress } from '../../api/api-path.js'
import { Field, mistakeAt } from '../../parts/form-field.js'
import { Dialog, DialogButtons } from '../../parts/modal-dialog.js'
import { Button } from '../../parts/press-button.js'
import { say } from '../../state/toast-list.js'
import type { JobDetail } from './job-detail.js'

interface RescheduleProps {
  readonly job: JobDetail
  readonly name: JobName
  readonly onClose: () => void
  readonly done: () => unknown
}

export function RescheduleDialog({ job, name, onClose, done }: RescheduleProps) {
  const [priority, setPriority] = useState(String(job.priority))
  const [delay, setDelay] = useState('')
  const [error, setError] = useState<unknown>()
  const mistakes: readonly FieldMistake[] = error instanceof ApiError ? error.fields : []
  const place = {
    ...(priority !== '' && Number(priority) !== job.priority && { priority: Number(priority) }),
    ...(delay.trim() !== '' && { delay: delay.trim() }),
  }
  const send = async () => {
    try {
      const { changed } = await post<Changed>(jobAddress(name, '/reschedule'), place)
      if (changed > 0) say('The job has another place.')
      else say('Nothing was changed: the job is in another state by now.', 'failed')
      onClose()
      await done()
    } catch (refusal) {
      setError(refusal)
    }
  }
  return (
    <Dialog title="Change its priority or due time" onClose={onClose}>
      <form
        class="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          if (Object.keys(place).length > 0) void send()
        }}
      >
        <div class="grid gap-3 sm:grid-cols-2">
          <Field
            label="Priority"
            type="number"
            hint="−32,768 to 32,767; higher runs first"
            value={priority}
            onInput={setPriority}
            mistake={mistakeAt(mistakes, 'priority')}
          />
          <Field
            label="Due after"
            hint="as 0s, 30s, 5m or 2h; empty: as it is"
            value={delay}
            onInput={setDelay}
            mistake={mistakeAt(mistakes, 'delay')}
          />
        </div>
        {error !== undefined && mistakes.length === 0 && (
          <p class="text-bad" role="alert">
            {messageOf(error)}
          </p>
        )}
        <DialogButtons>
          <Button onPress={onClose}>Leave it</Button>
          <Button type="submit" kind="main" isDisabled={Object.keys(place).length === 0}>
            Change
          </Button>
        </DialogButtons>
      </form>
    </Dialog>
  )
}
