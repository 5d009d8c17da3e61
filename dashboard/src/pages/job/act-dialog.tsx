/**
 * The act dialog: a form about one job, whose fields an action takes. Each mistake that the window finds is shown at its
 * field, any other refusal above the buttons.
 */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Changed } from '../../api/answers.js'
import { ApiError, messageOf } from '../../api/api-error.js'
import { mistakeAt } from '../../parts/form-field.js'
import { Dialog, DialogButtons } from '../../parts/modal-dialog.js'
import { Button } from '../../parts/press-button.js'
import { say } from '../../state/toast-list.js'

interface ActProps {
  readonly title: string
  /** The words of the button that does nothing. */
  readonly leave: string
  readonly verb: string
  readonly isDangerous?: boolean
  /** Whether there is something to send. Default true. */
  readonly isReady?: boolean
  /** Throws an `ApiError` for mistakes in the fields, too. */
  readonly act: () => Promise<Changed>
  /** Said after the change. */
  readonly done: string
  /** Called after the change, or if the job is in another state by now. */
  readonly onDone: () => unknown
  readonly onClose: () => void
  /** The fields; `mistakeOf` gives the mistake in the field of a name. */
  readonly children: (mistakeOf: (name: string) => string | undefined) => ComponentChildren
}

export function ActDialog(props: ActProps) {
  const { title, leave, verb, isDangerous = false, isReady = true, act, done, onDone, onClose, children } = props
  const [error, setError] = useState<unknown>()
  const mistakes = error instanceof ApiError ? error.fields : []
  let isAtField = false
  const fields = children((name) => {
    const mistake = mistakeAt(mistakes, name)
    isAtField ||= mistake !== undefined
    return mistake
  })
  const send = async () => {
    try {
      const { changed } = await act()
      if (changed > 0) say(done)
      else say('Nothing was changed: the job is in another state by now.', 'failed')
      onClose()
      await onDone()
    } catch (refusal) {
      setError(refusal)
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          if (isReady) void send()
        }}
      >
        {fields}
        {error !== undefined && !isAtField && (
          <p class="wrap-anywhere text-bad" role="alert">
            {messageOf(error)}
          </p>
        )}
        <DialogButtons>
          <Button onPress={onClose}>{leave}</Button>
          <Button type="submit" kind={isDangerous ? 'danger' : 'main'} isDisabled={!isReady}>
            {verb}
          </Button>
        </DialogButtons>
      </form>
    </Dialog>
  )
}
