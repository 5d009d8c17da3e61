/** The queue actions: an operator's actions on a whole queue. */

import { useState } from 'preact/hooks'
import type { Changed, Overview, QueueDetail } from '../../api/answers.js'
import { get, post } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { Field, Select } from '../../parts/form-field.js'
import { Dialog, DialogButtons } from '../../parts/modal-dialog.js'
import { Menu } from '../../parts/popover-menu.js'
import { Button } from '../../parts/press-button.js'
import { ThrottleDialog } from '../../parts/throttle-dialog.js'
import { askToConfirm } from '../../state/asked-action.js'
import { useResource } from '../../state/resource.js'
import { say } from '../../state/toast-list.js'
import { countOf, exactCount } from '../../words/count-words.js'
import { safeText } from '../../words/safe-text.js'
import { EnqueueDialog } from './enqueue-dialog.js'

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

function askToDrain({ name, ready, scheduled, waiting, running }: QueueDetail, refresh: () => void): void {
  const left = ready + scheduled + waiting + running
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

function askToClear({ name, ready, scheduled, waiting, dead }: QueueDetail, refresh: () => void): void {
  askToConfirm({
    title: 'Clear the queue?',
    text: `Removes ${countOf(ready + scheduled + waiting, 'waiting job')} and ${countOf(dead, 'dead job')} for good. Running jobs go on.`,
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

interface MoveProps {
  readonly queue: QueueDetail
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Brings the jobs of an ordered queue into another one. */
function MoveDialog({ queue, onClose, onDone }: MoveProps) {
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

const mostShards = 1_024

interface ReshardProps {
  readonly queue: QueueDetail
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Spreads an ordered queue over another number of shards. */
function ReshardDialog({ queue, onClose, onDone }: ReshardProps) {
  const [text, setText] = useState(String(queue.shards))
  const shards = Number(text)
  const isRight = Number.isInteger(shards) && shards >= 1 && shards <= mostShards
  const ask = () => {
    onClose()
    askToConfirm({
      title: `Spread the queue over ${countOf(shards, 'shard')}?`,
      text: `It has ${countOf(queue.shards, 'shard')} now. No job of it starts until all are moved.`,
      verb: 'Reshard',
      typed: queue.name,
      act: () => post<Changed>(at`queues/${queue.name}/reshard`, { shards }),
      done: () => {
        say(`It has ${countOf(shards, 'shard')} now.`)
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
