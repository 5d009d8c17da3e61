/** The queue actions: an operator's actions on a whole queue. */

import { useState } from 'preact/hooks'
import type { Changed, QueueDetail } from '../../api/answers.js'
import { post } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { Menu } from '../../parts/popover-menu.js'
import { Button } from '../../parts/press-button.js'
import { ThrottleDialog } from '../../parts/throttle-dialog.js'
import { askToConfirm } from '../../state/asked-action.js'
import { say } from '../../state/toast-list.js'
import { countOf } from '../../words/count-words.js'
import { EnqueueDialog } from './enqueue-dialog.js'
import { MoveDialog } from './move-dialog.js'
import { ReshardDialog } from './reshard-dialog.js'

interface ActionsProps {
  readonly queue: QueueDetail
  readonly refresh: () => void
}

type OpenDialog = 'enqueue' | 'throttle' | 'move' | 'reshard' | undefined

export function QueueActions({ queue, refresh }: ActionsProps) {
  const [open, setOpen] = useState<OpenDialog>(undefined)
  const close = () => setOpen(undefined)
  const { name, kind, throttle } = queue
  const isHeld = queue.paused || queue.draining
  const send = async (verb: 'pause' | 'resume', said: string) => {
    await post(at`queues/${name}/${verb}`)
    say(said)
    refresh()
  }
  return (
    <>
      <Button kind="main" onPress={() => setOpen('enqueue')}>
        Enqueue …
      </Button>
      {isHeld ? (
        <Button onPress={() => send('resume', 'It starts jobs again.')}>Resume</Button>
      ) : (
        <Button onPress={() => send('pause', 'It starts no jobs from now on; running ones go on.')}>Pause</Button>
      )}
      <Menu
        label="More actions"
        items={[
          ...(queue.draining ? [] : [{ text: 'Drain …', onPick: () => askToDrain(queue, refresh) }]),
          ...(throttle ? [{ text: 'Change the throttle …', onPick: () => setOpen('throttle') }] : []),
          ...(kind === 'ordered'
            ? [
                { text: 'Reshard …', onPick: () => setOpen('reshard') },
                { text: 'Move its jobs …', onPick: () => setOpen('move') },
              ]
            : []),
          { text: 'Clear …', isDangerous: true, onPick: () => askToClear(queue, refresh) },
        ]}
      />
      {open === 'enqueue' && (
        <EnqueueDialog queue={name} isOrdered={kind === 'ordered'} onClose={close} onDone={refresh} />
      )}
      {open === 'throttle' && throttle && (
        <ThrottleDialog queue={name} queues={throttle.queues} rules={throttle.rules} onClose={close} onDone={refresh} />
      )}
      {open === 'move' && <MoveDialog queue={queue} onClose={close} onDone={refresh} />}
      {open === 'reshard' && <ReshardDialog queue={queue} onClose={close} onDone={refresh} />}
    </>
  )
}

function askToDrain({ name, ready, scheduled, running }: QueueDetail, refresh: () => void): void {
  const left = ready + scheduled + running
  askToConfirm({
    title: 'Drain the queue?',
    text: `It refuses new jobs from now on, until it is resumed. ${left === 0 ? 'Nothing waits or runs in it.' : `${countOf(left, 'job')} that wait or run are still done.`}`,
    verb: 'Drain',
    isOneStep: true,
    act: () => post<Changed>(at`queues/${name}/drain`),
    done: () => {
      say('It takes no new jobs from now on.')
      refresh()
    },
  })
}

function askToClear({ name, ready, scheduled, dead }: QueueDetail, refresh: () => void): void {
  askToConfirm({
    title: 'Clear the queue?',
    text: `Removes ${countOf(ready + scheduled, 'waiting job')} and ${countOf(dead, 'dead job')} for good. Running jobs go on.`,
    verb: 'Clear',
    isDangerous: true,
    typed: name,
    act: () => post<Changed>(at`queues/${name}/clear`, { confirm: name }),
    done: (changed) => {
      say(`${countOf(changed, 'job')} removed.`)
      refresh()
    },
  })
}
