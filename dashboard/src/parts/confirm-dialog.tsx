/**
 * The confirm dialog: says what an action will do and to how many, asks for the name before a large one, and takes it.
 */

import { useState } from 'preact/hooks'
import { type AskedAction, askedAction, leaveAction, standing, stopAction, takeAction } from '../state/asked-action.js'
import { exactCount } from '../words/count-words.js'
import { Field } from './form-field.js'
import { Dialog, DialogButtons } from './modal-dialog.js'
import { Button } from './press-button.js'

/** Shows the latest action of `askToConfirm()`. The page shell contains it. */
export function ConfirmDialog() {
  const action = askedAction.value
  return action === undefined ? null : <Asked key={action.title} action={action} />
}

function Asked({ action }: { readonly action: AskedAction }) {
  const { title, text, verb, isDangerous = false, typed } = action
  const { isRunning, changed, isStopped, error } = standing.value
  const [name, setName] = useState('')
  const isConfirmed = typed === undefined || name === typed
  return (
    <Dialog title={title} onClose={leaveAction} isBusy={isRunning}>
      <form
        class="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          if (isConfirmed) void takeAction()
        }}
      >
        <div class="wrap-anywhere text-muted">{text}</div>
        {typed !== undefined && <Field label={`Type ${typed} to confirm`} value={name} onInput={setName} isCode />}
        <div aria-live="polite" class="empty:hidden">
          {(isRunning || changed > 0) && (
            <p>
              {exactCount(changed)} changed
              {isRunning ? ' so far …' : '. More are left: send again, or leave it at that.'}
            </p>
          )}
          {error !== undefined && <p class="whitespace-pre-line text-bad">{error}</p>}
        </div>
        <DialogButtons>
          {isRunning ? (
            <Button onPress={stopAction} isDisabled={isStopped}>
              {isStopped ? 'Stopping …' : 'Stop after this step'}
            </Button>
          ) : (
            <Button onPress={leaveAction}>{changed > 0 ? 'Close' : 'Back'}</Button>
          )}
          <Button type="submit" kind={isDangerous ? 'danger' : 'main'} isDisabled={isRunning || !isConfirmed}>
            {changed > 0 && !isRunning ? 'Send again' : verb}
          </Button>
        </DialogButtons>
      </form>
    </Dialog>
  )
}
