/** The enqueue dialog: one job by hand; each mistake is shown at its field. */

import { useEffect, useState } from 'preact/hooks'
import type { ListPage } from '../../api/answers.js'
import { get, post } from '../../api/api-client.js'
import { ApiError, type FieldMistake, messageOf } from '../../api/api-error.js'
import { at, jobPage } from '../../api/api-path.js'
import { Field, mistakeAt } from '../../parts/form-field.js'
import { Dialog, DialogButtons } from '../../parts/modal-dialog.js'
import { Button } from '../../parts/press-button.js'
import { go } from '../../state/page-address.js'
import { useResource } from '../../state/resource.js'
import { say } from '../../state/toast-list.js'
import { safeText, shortText } from '../../words/safe-text.js'
import { type JobForm, jobOf, jsonText, noTexts } from './job-form.js'

interface EnqueueProps {
  readonly queue: string
  readonly isOrdered: boolean
  readonly onClose: () => void
  readonly onDone: () => void
  /** The initial contents of the fields. Default: empty. */
  readonly form?: Partial<JobForm>
  /** Sent along as it is. Default: none. */
  readonly meta?: Readonly<Record<string, unknown>> | undefined
}

/** A task of the queue; without `example` nothing is known of its inputs. */
interface TaskExample {
  readonly name: string
  readonly example?: unknown
}

interface Enqueued {
  readonly jobs: readonly { readonly id: string; readonly outcome: string }[]
}

const outcomes: Readonly<Record<string, string>> = {
  added: 'was enqueued.',
  merged: 'was merged into the waiting job of its id.',
  replaced: 'took the place of the waiting job of its id.',
  duplicate: 'was there already: nothing was enqueued.',
}

export function EnqueueDialog({ queue, isOrdered, onClose, onDone, form = {}, meta }: EnqueueProps) {
  const [texts, setTexts] = useState<JobForm>({ ...noTexts, ...form })
  const [mistakes, setMistakes] = useState<readonly FieldMistake[]>([])
  const [error, setError] = useState<string | undefined>(undefined)
  const tasks = useResource<ListPage<TaskExample>>((signal) => get(at`queues/${queue}/tasks`, { signal }), [queue])
  const known = tasks.data.value?.items ?? []
  const inputHint = `JSON; ${form.input === undefined ? 'empty: none' : 'dates, bytes and big integers of the payload are text here'}`
  const named = known.find(({ name }) => name === texts.task.trim())
  // A queue of one task needs no choice.
  useEffect(() => {
    const [only, ...others] = known
    if (only !== undefined && others.length === 0 && texts.task === '') setTexts({ ...texts, task: only.name })
  }, [tasks.data.value])
  const field = (name: keyof JobForm) => ({
    value: texts[name],
    onInput: (value: string) => setTexts({ ...texts, [name]: value }),
    mistake: mistakeAt(mistakes, name),
  })
  const send = async () => {
    const { job, mistakes: own } = jobOf(texts)
    setMistakes(own)
    setError(undefined)
    if (job === undefined) return
    try {
      const { jobs } = await post<Enqueued>(at`queues/${queue}/jobs`, { ...job, ...(meta && { meta }) })
      const [{ id, outcome } = { id: '', outcome: '' }] = jobs
      say(`Job ${shortText(safeText(id))} ${outcomes[outcome] ?? 'was sent.'}`)
      onDone()
      onClose()
      go(jobPage({ queue, id }))
    } catch (reason) {
      setMistakes(reason instanceof ApiError ? reason.fields : [])
      setError(messageOf(reason))
    }
  }
  return (
    <Dialog title={`Enqueue a job in ${safeText(queue)}`} onClose={onClose}>
      <form
        class="grid gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
      >
        <Field label="Task" isRequired isCode choices={known.map(({ name }) => name)} {...field('task')} />
        <div class="grid gap-1">
          <Field label="Input" lines={5} isCode hint={inputHint} {...field('input')} />
          {named?.example !== undefined && (
            <div>
              <Button kind="quiet" onPress={() => setTexts({ ...texts, input: jsonText(named.example) })}>
                Fill in an example
              </Button>
            </div>
          )}
        </div>
        <div class="grid gap-3 sm:grid-cols-2">
          <Field
            label="Id"
            isCode
            hint={isOrdered ? 'what its jobs are ordered by' : 'empty: a new one; with one it is enqueued once'}
            {...field('id')}
          />
          <Field label="Delay" hint="as 30s, 5m or 2h; empty: at once" {...field('delay')} />
          {isOrdered ? (
            <Field label="Score" type="number" hint="its place among the payloads of its id" {...field('score')} />
          ) : (
            <Field label="Priority" type="number" hint="−32,768 to 32,767; higher runs first" {...field('priority')} />
          )}
          <Field label="Group" hint="of throttles and limits by group" {...field('group')} />
        </div>
        {error !== undefined && (
          <p role="alert" class="whitespace-pre-line wrap-anywhere text-bad">
            {error}
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
