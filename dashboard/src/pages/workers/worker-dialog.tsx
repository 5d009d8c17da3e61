/** The worker dialog: everything that one worker reports, the jobs that it holds, and orders to it. */

import type { HeldJob, WorkerRow } from '../../api/answers.js'
import { get, post } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { jobPage } from '../../api/job-address.js'
import { mayChange } from '../../api/session-state.js'
import { Details } from '../../parts/detail-list.js'
import { Dialog, DialogButtons } from '../../parts/modal-dialog.js'
import { DurationText, Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { Button } from '../../parts/press-button.js'
import { TableNotice } from '../../parts/table-notice.js'
import { askToConfirm } from '../../state/asked-action.js'
import { setQuery } from '../../state/page-address.js'
import { useResource } from '../../state/resource.js'
import { say } from '../../state/toast-list.js'
import { bytesWords, countOf } from '../../words/count-words.js'
import { safeText, shortText } from '../../words/safe-text.js'
import { WorkerState } from './worker-columns.js'

interface WorkerProps {
  readonly worker: WorkerRow
  readonly onChanged: () => void
}

const everyMs = 2_000

const orders = {
  stop: {
    verb: 'Stop the worker',
    text: 'It takes no more jobs, finishes those in hand within its grace, and ends. No other takes its place.',
    done: 'is told to stop',
  },
  recycle: {
    verb: 'Recycle the worker',
    text: 'It takes no more jobs, finishes those in hand within its grace, and ends. Its supervisor, if it has one, puts a fresh process in its place.',
    done: 'is told to make room for a fresh one',
  },
} as const

function ask(order: keyof typeof orders, { worker: { id, host, pid, running }, onChanged }: WorkerProps): void {
  const { verb, text, done } = orders[order]
  const name = `${shortText(safeText(host), 30)} · ${pid}`
  askToConfirm({
    ...{ title: `${verb} ${name}?`, verb, isDangerous: order === 'stop' },
    text: `${text} It has ${countOf(running, 'job')} in hand, and hears of this within 20 s.`,
    act: () => post(at`workers/${id}/` + order),
    done: () => {
      say(`${name} ${done}.`)
      onChanged()
    },
  })
}

export function WorkerDialog(props: WorkerProps) {
  const { worker } = props
  return (
    <Dialog
      title={`${shortText(safeText(worker.host), 40)} · ${worker.pid}`}
      onClose={() => setQuery({ worker: undefined })}
    >
      <Details
        details={[
          ['State', <WorkerState key="state" worker={worker} />],
          ['Id', <Name key="id" text={worker.id} most={36} isId canCopy />],
          ['Queues', worker.queues.map(safeText).join(', ')],
          ['Slots', `${worker.running} of ${worker.slots} at work`],
          ['Selector', worker.selector],
          ['Tasks', worker.tasks === undefined ? undefined : countOf(worker.tasks, 'task')],
          ['Memory', worker.rssBytes === undefined ? undefined : bytesWords(worker.rssBytes)],
          [
            'Loop delay',
            worker.loopDelayMs === undefined ? undefined : <DurationText key="delay" ms={worker.loopDelayMs} />,
          ],
          ['Millrace', worker.version],
          ['Started', <Moment key="started" at={worker.startedAt} />],
          ['Seen', <Moment key="seen" at={worker.seenAt} />],
        ]}
      />
      <InHand id={worker.id} />
      <DialogButtons>
        {mayChange.value && (
          <>
            <Button kind="danger" onPress={() => ask('stop', props)}>
              Stop
            </Button>
            <Button onPress={() => ask('recycle', props)}>Recycle</Button>
          </>
        )}
        <Button kind="main" onPress={() => setQuery({ worker: undefined })}>
          Close
        </Button>
      </DialogButtons>
    </Dialog>
  )
}

function InHand({ id }: { readonly id: string }) {
  const held = useResource(
    (signal) => get<{ readonly items: readonly HeldJob[]; readonly more: boolean }>(at`workers/${id}/jobs`, { signal }),
    [id],
    { everyMs },
  )
  const { items = [], more = false } = held.data.value ?? {}
  if (held.error.value) return <TableNotice error={held.error.value} />
  return (
    <section aria-label="Jobs in hand" class="min-h-24">
      <h3 class="mb-1 font-medium">Jobs in hand</h3>
      {held.data.value !== undefined && items.length === 0 && <p class="text-muted">None now.</p>}
      <ul class="divide-y divide-line">
        {items.map((job) => (
          <li key={`${job.queue} ${job.id}`} class="py-1.5">
            <a class="link" href={jobPage(job)}>
              <Name text={job.id} most={36} isId />
            </a>
            <div class="text-sm text-muted">
              <Name text={job.task} /> in <Name text={job.queue} /> ·{' '}
              {job.startedAt ? <Moment at={job.startedAt} /> : 'reserved'}
              {job.progress && ` · ${Math.round(job.progress.fraction * 100)} %`}
              {job.progress?.note && ` · ${shortText(safeText(job.progress.note), 60)}`}
            </div>
          </li>
        ))}
      </ul>
      {more && <p class="text-sm text-muted">And more.</p>}
    </section>
  )
}
