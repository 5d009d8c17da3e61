/** The reschedule dialog: gives a job that waits another priority, another due time, or both. */

import { useState } from 'preact/hooks'
import { post } from '../../api/api-client.js'
import { type JobName, jobAddress } from '../../api/api-path.js'
import { Field } from '../../parts/form-field.js'
import { ActDialog } from './act-dialog.js'
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
  const place = {
    ...(priority !== '' && Number(priority) !== job.priority && { priority: Number(priority) }),
    ...(delay.trim() !== '' && { delay: delay.trim() }),
  }
  return (
    <ActDialog
      title="Change its priority or due time"
      leave="Leave it"
      verb="Change"
      isReady={Object.keys(place).length > 0}
      act={() => post(jobAddress(name, '/reschedule'), place)}
      done="The job has another place."
      onDone={done}
      onClose={onClose}
    >
      {(mistakeOf) => (
        <div class="grid gap-3 sm:grid-cols-2">
          <Field
            label="Priority"
            type="number"
            hint="−32,768 to 32,767; higher runs first"
            value={priority}
            onInput={setPriority}
            mistake={mistakeOf('priority')}
          />
          <Field
            label="Due after"
            hint="as 0s, 30s, 5m or 2h; empty: as it is"
            value={delay}
            onInput={setDelay}
            mistake={mistakeOf('delay')}
          />
        </div>
      )}
    </ActDialog>
  )
}
