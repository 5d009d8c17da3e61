/**
 * The input dialogs: a job is enqueued again, or a dead one begins anew, with an input that the schema of its task checks. An
 * input that nobody changes is not sent: what is shown of it may be redacted, and has no dates and bytes.
 */

import type { ComponentProps } from 'preact'
import { useState } from 'preact/hooks'
import type { Changed } from '../../api/answers.js'
import { post } from '../../api/api-client.js'
import { ApiError } from '../../api/api-error.js'
import { at, jobAddress, jobPage } from '../../api/api-path.js'
import { Field } from '../../parts/form-field.js'
import { go } from '../../state/page-address.js'
import { jsonText, otherInput } from '../queue/job-form.js'
import { ActDialog } from './act-dialog.js'
import type { JobDetail } from './job-detail.js'

interface InputProps {
  readonly job: JobDetail
  /** Whether its input is shown as it is, but for types that JSON lacks. */
  readonly isWhole: boolean
  readonly onClose: () => void
}

const wholeWords = 'Its input is kept as it is unless you change it: dates, bytes and big integers are text below.'
const hiddenWords = 'This dashboard hides parts of inputs, so what it has is not shown here.'

/** The text of the field, and how it was filled. */
function useInput({ job, isWhole }: InputProps) {
  const [before] = useState(isWhole ? jsonText(job.input) : '')
  const [text, setText] = useState(before)
  return { text, setText, other: () => otherInput(text, before), words: isWhole ? wholeWords : hiddenWords }
}

/** Under a new id. */
export function AgainDialog(props: InputProps) {
  const { queue, id } = props.job
  const { text, setText, other, words } = useInput(props)
  let made = ''
  const enqueue = async () => {
    const answer = await post<Changed & { readonly jobs: readonly { readonly id: string }[] }>(
      jobAddress({ queue, id }, '/enqueue-again'),
      other(),
    )
    made = answer.jobs[0]?.id ?? ''
    return answer
  }
  return (
    <ActDialog
      title="Enqueue it again?"
      leave="Leave it"
      verb="Enqueue"
      act={enqueue}
      done="The job was enqueued again."
      onDone={() => go(jobPage({ queue, id: made }))}
      onClose={props.onClose}
    >
      {(mistakeOf) => (
        <>
          <p class="text-muted">A new job of its task, with its meta and priority, under a new id. {words}</p>
          <InputField
            hint="JSON; empty: the input that it has"
            value={text}
            onInput={setText}
            mistake={mistakeOf('input')}
          />
        </>
      )}
    </ActDialog>
  )
}

function InputField(props: Pick<ComponentProps<typeof Field>, 'hint' | 'value' | 'onInput' | 'mistake'>) {
  return <Field label="Input" lines={8} isCode {...props} />
}

const missing = 'must be another one; Revive alone keeps the input that it has'

/** Under its own id. */
export function ReviveDialog({ done, ...props }: InputProps & { readonly done: () => unknown }) {
  const { queue, id } = props.job
  const { text, setText, other, words } = useInput(props)
  const revive = async () => {
    const { input } = other()
    if (input === undefined) throw new ApiError(0, 'argument-invalid', missing, [{ path: 'input', message: missing }])
    return post<Changed>(at`queues/${queue}/morgue/revive`, { ids: [id], input })
  }
  return (
    <ActDialog
      title="Revive with another input?"
      leave="Leave it dead"
      verb="Revive"
      act={revive}
      done="The job is back in the queue, with this input."
      onDone={done}
      onClose={props.onClose}
    >
      {(mistakeOf) => (
        <>
          <p class="text-muted">
            It begins anew under its id: its meta and priority stay, its errors, its log and its fields go. {words}
          </p>
          <InputField hint="JSON" value={text} onInput={setText} mistake={mistakeOf('input')} />
        </>
      )}
    </ActDialog>
  )
}
