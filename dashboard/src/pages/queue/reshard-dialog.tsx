/** The reshard dialog: spreads an ordered queue over another number of shards. */

import { useState } from 'preact/hooks'
import type { Changed, QueueDetail } from '../../api/answers.js'
import { post } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { Field } from '../../parts/form-field.js'
import { Dialog, DialogButtons } from '../../parts/modal-dialog.js'
import { Button } from '../../parts/press-button.js'
import { askToConfirm } from '../../state/asked-action.js'
import { say } from '../../state/toast-list.js'
import { countOf, exactCount } from '../../words/count-words.js'

const mostShards = 1_024

interface ReshardProps {
  readonly queue: QueueDetail
  readonly onClose: () => void
  readonly onDone: () => void
}

export function ReshardDialog({ queue, onClose, onDone }: ReshardProps) {
  const [text, setText] = useState(String(queue.shards))
  const shards = Number(text)
  const isRight = Number.isInteger(shards) && shards >= 1 && shards <= mostShards
  const ask = () => {
    onClose()
    askToConfirm({
      title: `Spread the queue over ${countOf(shards, 'shard')}?`,
      text: `It lies in ${countOf(queue.shards, 'shard')} now. No job of it starts until all are moved.`,
      verb: 'Reshard',
      typed: queue.name,
      act: () => post<Changed>(at`queues/${queue.name}/reshard`, { shards }),
      done: () => {
        say(`It lies in ${countOf(shards, 'shard')} now.`)
        onDone()
      },
    })
  }
  return (
    <Dialog title="Reshard" onClose={onClose}>
      <Field
        label="Shards"
        type="number"
        value={text}
        onInput={setText}
        hint={`1 to ${exactCount(mostShards)}; workers spread over them`}
        mistake={isRight ? undefined : `must be a whole number from 1 to ${exactCount(mostShards)}`}
      />
      <DialogButtons>
        <Button onPress={onClose}>Cancel</Button>
        <Button kind="main" onPress={ask} isDisabled={!isRight || shards === queue.shards}>
          Go on …
        </Button>
      </DialogButtons>
    </Dialog>
  )
}
