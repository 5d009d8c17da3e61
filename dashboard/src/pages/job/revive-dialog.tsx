/** The revive dialog: a dead job begins anew with another input, which the schema of its task checks. */

import { useState } from 'preact/hooks'
import type { Changed } from '../../api/answers.js'
import { post } from '../../api/api-client.js'
import { messageOf } from '../../api/api-error.js'
import { at } from '../../api/api-path.js'
import { Field } from '../../parts/form-field.js'
import { Dialog, DialogButtons } from '../../parts/modal-dialog.js'
import { Button } from '../../parts/press-button.js'
import { say } from '../../state/toast-list.js'
import { jsonIn, jsonText } from '../queue/job-form.js'
import type { JobDetail } from './job-detail.js'

interface ReviveProps {
  readonly job: JobDetail
  readonly onClose: () => void
  readonly done: () => unknown
}

export function ReviveDialog({ job: { queue, id, input }, onClose, done }: ReviveProps) {
  const [text, setText] = useState(jsonText(input))
  const [error, setError] = useState<string>()
  const send = async () => {
    const {
      value,
      mistake = value === undefined ? 'is missing; Revive alone keeps the input that it has' : undefined,
    } = jsonIn(text)
    setError(mistake)
    if (mistake !== undefined) return
    try {
      const { changed } = await post<Changed>(at`queues/${queue}/morgue/revive`, { ids: [id], input: value })
      if (changed > 0) say('The job is back in the queue, with this input.')
      else say('Nothing was changed: the job is in another state by now.', 'failed')
      onClose()
      await done()
    } catch (refusal) {
      setError(messageOf(refusal))
    }
  }
  return (
    <Dialog title="Revive with another input?" onClose={onClose}>
      <form
        class="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
      >
        <p class="text-muted">
          It begins anew under its id: its meta and priority stay, its errors, its log and its fields go.
        </p>
        <Field label="Input" lines={8} isCode hint="JSON" value={text} onInput={setText} mistake={error} />
        <DialogButtons>
          <Button onPress={onClose}>Leave it dead</Button>
          <Button type="submit" kind="main">
            Revive
          </Button>
        </DialogButtons>
      </form>
    </Dialog>
  )
}
