/** The revive dialog: a dead job begins anew with another input, which the schema of its task checks. */

import { useState } from 'preact/hooks'
import type { Changed } from '../../api/answers.js'
import { post } from '../../api/api-client.js'
import { ApiError } from '../../api/api-error.js'
import { at } from '../../api/api-path.js'
import type { TypedJson } from '../../api/typed-json.js'
import { Field } from '../../parts/form-field.js'
import { jsonIn, jsonText } from '../queue/job-form.js'
import { ActDialog } from './act-dialog.js'
import type { JobDetail } from './job-detail.js'

interface ReviveProps {
  readonly job: JobDetail
  readonly onClose: () => void
  readonly done: () => unknown
}

export function ReviveDialog({ job: { queue, id, input }, onClose, done }: ReviveProps) {
  const [text, setText] = useState(jsonText(input))
  const revive = async () => post<Changed>(at`queues/${queue}/morgue/revive`, { ids: [id], input: inputIn(text) })
  return (
    <ActDialog
      title="Revive with another input?"
      leave="Leave it dead"
      verb="Revive"
      act={revive}
      done="The job is back in the queue, with this input."
      onDone={done}
      onClose={onClose}
    >
      {(mistakeOf) => (
        <>
          <p class="text-muted">
            It begins anew under its id: its meta and priority stay, its errors, its log and its fields go.
          </p>
          <Field
            label="Input"
            lines={8}
            isCode
            hint="JSON"
            value={text}
            onInput={setText}
            mistake={mistakeOf('input')}
          />
        </>
      )}
    </ActDialog>
  )
}

/** Throws an `ApiError` for a text that is no input. */
function inputIn(text: string): TypedJson {
  const { value, mistake = 'is missing; Revive alone keeps the input that it has' } = jsonIn(text)
  if (value !== undefined) return value
  throw new ApiError(0, 'argument-invalid', mistake, [{ path: 'input', message: mistake }])
}
