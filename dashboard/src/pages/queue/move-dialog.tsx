/** The move dialog: brings the jobs of an ordered queue into another one. */

import { useState } from 'preact/hooks'
import type { Changed, Overview, QueueDetail } from '../../api/answers.js'
import { get, post } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { Select } from '../../parts/form-field.js'
import { Dialog, DialogButtons } from '../../parts/modal-dialog.js'
import { Button } from '../../parts/press-button.js'
import { askToConfirm } from '../../state/asked-action.js'
import { useResource } from '../../state/resource.js'
import { say } from '../../state/toast-list.js'
import { countOf } from '../../words/count-words.js'
import { safeText } from '../../words/safe-text.js'

interface MoveProps {
  readonly queue: QueueDetail
  readonly onClose: () => void
  readonly onDone: () => void
}

export function MoveDialog({ queue, onClose, onDone }: MoveProps) {
  const overview = useResource<Overview>((signal) => get('overview', { query: { minutes: 1 }, signal }), [])
  const others = overview.data.value?.queues.filter(({ name, kind }) => kind === 'ordered' && name !== queue.name)
  const [chosen, setChosen] = useState('')
  const to = chosen === '' ? others?.[0]?.name : chosen
  const ask = () => {
    if (to === undefined) return
    onClose()
    const count = queue.ready + queue.scheduled + queue.dead
    askToConfirm({
      title: `Move the jobs to ${safeText(to)}?`,
      text: `Brings ${countOf(count, 'waiting or dead job')} into the queue ${safeText(to)}. Running jobs stay.`,
      verb: 'Move',
      typed: queue.name,
      act: () => post<Changed>(at`queues/${queue.name}/move`, { to }),
      done: (changed) => {
        say(`${countOf(changed, 'job')} moved.`)
        onDone()
      },
    })
  }
  return (
    <Dialog title="Move its jobs" onClose={onClose}>
      <p class="text-muted">Into another ordered queue; those of one id go together and keep their order.</p>
      <div class="min-h-8">
        {others?.length === 0 && <p>There is no other ordered queue.</p>}
        {others !== undefined && others.length > 0 && (
          <Select
            label="Into which queue"
            value={to ?? ''}
            choices={others.map(({ name }) => [name, name] as const)}
            onChange={setChosen}
          />
        )}
        {overview.error.value && <p class="text-bad">{overview.error.value.message}</p>}
      </div>
      <DialogButtons>
        <Button onPress={onClose}>Cancel</Button>
        <Button kind="main" onPress={ask} isDisabled={to === undefined}>
          Go on …
        </Button>
      </DialogButtons>
    </Dialog>
  )
}
