/** The key help: the list of keys and their actions. */

import { Dialog, DialogButtons } from '../parts/modal-dialog.js'
import { Button } from '../parts/press-button.js'
import { destinations, isHelpOpen } from '../state/key-bindings.js'

const keys: readonly (readonly [keys: string, text: string])[] = [
  ...destinations.map(({ key, title }) => [`g ${key}`, `Go to: ${title}`] as const),
  ['/', 'Search or filter'],
  ['j', 'Next row'],
  ['k', 'Row before'],
  ['Enter', 'Open the row'],
  ['x', 'Select the row'],
  ['← →', 'Move along a chart that has the focus'],
  ['Esc', 'Close a dialog'],
  ['?', 'This help'],
]

export function KeyHelp() {
  if (!isHelpOpen.value) return null
  const close = () => {
    isHelpOpen.value = false
  }
  return (
    <Dialog title="Keys" onClose={close}>
      <dl class="grid grid-cols-[auto_1fr] gap-x-5 gap-y-1.5">
        {keys.map(([key, text]) => (
          <div key={key} class="contents">
            <dt>
              <kbd class="rounded border border-line bg-sunk px-1.5 py-0.5 font-mono text-xs">{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <DialogButtons>
        <Button onPress={close}>Close</Button>
      </DialogButtons>
    </Dialog>
  )
}
