/** The job acts: an operator's actions on one job in its state, each confirmed before it is taken. */

import type { Changed, JobState } from '../../api/answers.js'
import { post, redacts, remove } from '../../api/api-client.js'
import { at, type JobName, jobAddress } from '../../api/api-path.js'
import type { MenuItem } from '../../parts/popover-menu.js'
import { askToConfirm } from '../../state/asked-action.js'
import { say } from '../../state/toast-list.js'
import { safeText, shortText } from '../../words/safe-text.js'
import { hasEnded, isOrdered, isShownWhole, type JobDetail } from './job-detail.js'

/** The acts with a dialog of their own. */
export type JobDialog = 'cancel' | 'fail' | 'again' | 'revive' | 'reschedule'

interface ActParts {
  readonly job: JobDetail
  readonly name: JobName
  readonly open: (dialog: JobDialog) => void
  /** Called after an action. */
  readonly done: () => unknown
}

/** The likeliest first. */
export function actsOf({ job, name, open, done }: ActParts): readonly MenuItem[] {
  const { state, queue, id } = job
  const asked = (verb: ActVerb): MenuItem => ({
    text: verb.verb,
    ...(verb.isDangerous && { isDangerous: true }),
    onPick: () =>
      askToConfirm({
        title: `${verb.verb}: ${shortText(safeText(id), 60)}?`,
        text: verb.text,
        verb: verb.verb,
        ...(verb.isDangerous && { isDangerous: true }),
        act: verb.act,
        done: (changed) => {
          if (changed > 0) say(verb.told)
          else say('Nothing was changed: the job is in another state by now.', 'failed')
          void done()
        },
      }),
  })
  const asJob: MenuItem = { text: 'Edit and enqueue again', onPick: () => open('again') }
  // Of an ordered job what is shown is sent.
  const again = isOrdered(job) && !isShownWhole(job, redacts.value) ? [] : [asJob]
  const cancel: MenuItem = { text: 'Cancel', isDangerous: true, onPick: () => open('cancel') }
  const fail: MenuItem = { text: 'End this run as failed', onPick: () => open('fail') }
  const dead = (verb: 'revive' | 'delete') => () => post(at`queues/${queue}/morgue/${verb}`, { ids: [id] })
  const runNow = asked({
    verb: 'Run now',
    text: 'It is due now, and starts when a worker is free. Its attempts stay.',
    told: 'The job is due now.',
    act: () => post(jobAddress(name, '/run-now')),
  })
  const bury = asked({
    verb: 'Bury',
    text: 'It goes to the morgue without being run, and can be revived there.',
    told: 'The job is in the morgue.',
    act: () => post(jobAddress(name, '/bury')),
  })
  const drop = asked({
    verb: state === 'completed' ? 'Delete result' : 'Delete',
    text: state === 'completed' ? 'Its result is removed, and nothing is kept of it.' : deleteWords(job),
    told: 'The job was deleted.',
    isDangerous: true,
    act: () => remove(jobAddress(name)),
  })
  const revive = asked({
    verb: 'Revive',
    text: 'It goes back into the queue, ready now, with all its attempts.',
    told: 'The job is back in the queue.',
    act: dead('revive'),
  })
  const reviveWith: MenuItem = { text: 'Revive with another input', onPick: () => open('revive') }
  const reschedule: MenuItem = { text: 'Change its priority or due time', onPick: () => open('reschedule') }
  const place = isOrdered(job) || job.suspect ? [] : [reschedule]
  const dropDead = asked({
    verb: 'Delete',
    text: 'It is removed from the morgue for good.',
    told: 'The job was deleted.',
    isDangerous: true,
    act: dead('delete'),
  })
  const byState: Readonly<Record<JobState, readonly MenuItem[]>> = {
    waiting: [cancel, bury, drop],
    scheduled: [runNow, cancel, ...place, bury, drop],
    ready: [cancel, ...place, bury, drop],
    running: [cancel, fail],
    completed: [drop],
    dead: isOrdered(job) ? [revive, dropDead] : [revive, reviveWith, dropDead],
    cancelled: [],
  }
  return hasEnded(state) && state !== 'dead' ? [...again, ...byState[state]] : [...byState[state], ...again]
}

interface ActVerb {
  readonly verb: string
  readonly text: string
  readonly told: string
  readonly isDangerous?: boolean
  readonly act: () => Promise<Changed>
}

function deleteWords(job: JobDetail): string {
  return isOrdered(job)
    ? 'It is removed without a trace, with all payloads that wait under its id.'
    : 'It is removed without a trace, and never runs.'
}
