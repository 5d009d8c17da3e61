/** The again dialog: enqueues a job once more, as it was or edited; under a new id unless another is given. */

import { useState } from 'preact/hooks'
import { post } from '../../api/api-client.js'
import { ApiError, type FieldMistake, messageOf } from '../../api/api-error.js'
import { at } from '../../api/api-path.js'
import { jobPage } from '../../api/job-address.js'
import { Field, mistakeAt } from '../../parts/form-field.js'
import { Dialog, DialogButtons } from '../../parts/modal-dialog.js'
import { Button } from '../../parts/press-button.js'
import { go } from '../../state/page-address.js'
import { say } from '../../state/toast-list.js'
import { isOrdered, type JobDetail } from './job-detail.js'

interface Enqueued {
  readonly jobs: readonly { readonly id: string; readonly outcome: string }[]
}

interface AgainForm {
  readonly task: string
  readonly input: string
  readonly id: string
  readonly delay: string
  readonly priority: string
  readonly group: string
  readonly score: string
}

/** The newest payload of an ordered job: the others were there before it. */
function formOf(job: JobDetail): AgainForm {
  const newest = job.payloads?.at(-1)
  const input = isOrdered(job) ? newest?.input : job.input
  return {
    task: job.task,
    input: input === undefined ? '' : JSON.stringify(input, undefined, 2),
    id: isOrdered(job) ? job.id : '',
    delay: '',
    priority: job.priority === 0 ? '' : String(job.priority),
    group: isOrdered(job) ? '' : (job.group ?? ''),
    score: newest === undefined ? '' : String(newest.score),
  }
}

/** Throws a `SyntaxError` where the input is no JSON. */
function bodyOf({ task, input, id, delay, priority, group, score }: AgainForm, job: JobDetail): object {
  const meta = isOrdered(job) ? job.payloads?.at(-1)?.meta : job.meta
  return {
    task,
    ...(input.trim() !== '' && { input: JSON.parse(input) as unknown }),
    ...(id !== '' && { id }),
    ...(delay !== '' && { delay }),
    ...(priority !== '' && { priority: Number(priority) }),
    ...(group !== '' && { group }),
    ...(score !== '' && { score: Number(score) }),
    ...(meta !== undefined && { meta }),
  }
}

export function AgainDialog({ job, onClose }: { readonly job: JobDetail; readonly onClose: () => void }) {
  const [form, setForm] = useState(() => formOf(job))
  const [error, setError] = useState<unknown>()
  const mistakes: readonly FieldMistake[] = error instanceof ApiError ? error.fields : []
  const input = (name: keyof AgainForm) => ({
    value: form[name],
    onInput: (value: string) => setForm((before) => ({ ...before, [name]: value })),
    mistake: mistakeAt(mistakes, name),
  })
  const send = async () => {
    try {
      const { jobs } = await post<Enqueued>(at`queues/${job.queue}/jobs`, bodyOf(form, job))
      const [{ id, outcome } = { id: job.id, outcome: 'added' }] = jobs
      say(
        outcome === 'duplicate' ? 'A job of that id is there already: nothing was enqueued.' : 'The job was enqueued.',
      )
      onClose()
      go(jobPage({ queue: job.queue, id }))
    } catch (refusal) {
      setError(refusal)
    }
  }
  const isNoJson = error instanceof SyntaxError
  return (
    <Dialog title="Edit and enqueue again" onClose={onClose}>
      <form
        class="grid gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
      >
        <Field label="Task" isRequired {...input('task')} />
        <Field
          label="Input as JSON"
          lines={8}
          isCode
          hint={
            job.payloadsHidden ? 'This window hides what the job carries.' : 'Dates and bytes have become text here.'
          }
          {...input('input')}
          {...(isNoJson && { mistake: `is no JSON: ${messageOf(error)}` })}
        />
        <div class="grid gap-3 sm:grid-cols-2">
          <Field
            label="Id"
            hint={isOrdered(job) ? 'Payloads of one id are handed over together.' : 'Empty: a new one.'}
            {...input('id')}
          />
          <Field label="Delay" placeholder="5m" hint="Empty: due now." {...input('delay')} />
          {isOrdered(job) ? (
            <Field label="Score" type="number" {...input('score')} />
          ) : (
            <>
              <Field
                label="Priority"
                type="number"
                hint="−32,768 to 32,767; higher runs first."
                {...input('priority')}
              />
              <Field label="Group" {...input('group')} />
            </>
          )}
        </div>
        {error !== undefined && !isNoJson && (
          <p class="wrap-anywhere text-bad" role="alert">
            {messageOf(error)}
          </p>
        )}
        <DialogButtons>
          <Button onPress={onClose}>Cancel</Button>
          <Button type="submit" kind="main">
            Enqueue
          </Button>
        </DialogButtons>
      </form>
    </Dialog>
  )
}
