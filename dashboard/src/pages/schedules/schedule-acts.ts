/** The schedule acts: run one now, pause it, resume it; each reports its outcome. */

import { signal } from '@preact/signals'
import type { Changed, ScheduleRow } from '../../api/answers.js'
import { post } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { say, sayError } from '../../state/toast-list.js'
import { safeText, shortText } from '../../words/safe-text.js'

/** Grows with every change: everything that shows schedules then loads again. */
export const loadedAgain = signal(0)

interface Ran extends Changed {
  readonly job?: { readonly queue: string; readonly id: string; readonly outcome: string }
}

/** The texts for the outcomes of an enqueue. */
const outcomes: Readonly<Record<string, string>> = {
  added: 'is enqueued',
  merged: 'is merged into one that waits',
  replaced: 'takes the place of one that waited',
  duplicate: 'was there already',
}

export async function runNow({ name }: Pick<ScheduleRow, 'name'>): Promise<void> {
  await taken(async () => {
    const { job } = await post<Ran>(at`schedules/${name}/run`)
    if (job === undefined) return `'${shownName(name)}' ran.`
    return `Job ${shownName(job.id)} ${outcomes[job.outcome] ?? job.outcome} in '${shownName(job.queue)}'.`
  })
}

export async function setPaused({ name }: Pick<ScheduleRow, 'name'>, isPaused: boolean): Promise<void> {
  await taken(async () => {
    await post(at`schedules/${name}/` + (isPaused ? 'pause' : 'resume'))
    return isPaused ? `'${shownName(name)}' ticks no more until it is resumed.` : `'${shownName(name)}' ticks again.`
  })
}

const shownName = (text: string) => shortText(safeText(text))

async function taken(act: () => Promise<string>): Promise<void> {
  try {
    say(await act())
    loadedAgain.value += 1
  } catch (error) {
    sayError(error)
  }
}
