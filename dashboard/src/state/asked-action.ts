/** The asked action: one that waits for its confirmation. It is taken in steps, until nothing is left or somebody stops it. */

import { type Signal, signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { Changed } from '../api/answers.js'
import { ApiError, messageOf } from '../api/api-error.js'

export interface AskedAction {
  /** As a question or a sentence: `Cancel 12 jobs?` */
  readonly title: string
  /** What will happen, and to how many. */
  readonly text: ComponentChildren
  /** On the button: `Cancel jobs`. */
  readonly verb: string
  /** Whether it loses something. Default false. */
  readonly isDangerous?: boolean
  /** Has to be typed before: the name of the queue. Default: nothing. */
  readonly typed?: string
  /** Takes one step; it is called again while the answer says `more`, unless `isOneStep`. */
  readonly act: () => Promise<Changed>
  /** Whether `more` does not mean "send again", as of a drain. Default false. */
  readonly isOneStep?: boolean
  /** Called when it is over, with all that was changed: to say so, and to load anew. */
  readonly done?: (changed: number) => void
}

interface Standing {
  readonly isRunning: boolean
  readonly changed: number
  readonly isStopped: boolean
  readonly error?: string
}

const atFirst: Standing = { isRunning: false, changed: 0, isStopped: false }

export const askedAction = signal<AskedAction | undefined>(undefined)
export const standing: Signal<Standing> = signal(atFirst)

/** Shows the dialog that asks. */
export function askToConfirm(action: AskedAction): void {
  standing.value = atFirst
  askedAction.value = action
}

/** Takes the action that was asked for, step by step. */
export async function takeAction(): Promise<void> {
  const action = askedAction.value
  if (action === undefined || standing.value.isRunning) return
  standing.value = { isRunning: true, changed: standing.value.changed, isStopped: false }
  try {
    for (;;) {
      const { changed, more } = await action.act()
      standing.value = { ...standing.value, changed: standing.value.changed + changed }
      if (!more || action.isOneStep) break
      if (standing.value.isStopped) {
        standing.value = { ...standing.value, isRunning: false }
        return
      }
    }
    leaveAction()
  } catch (error) {
    const fields = error instanceof ApiError ? error.fields.map(({ path, message }) => `${path}: ${message}`) : []
    standing.value = { ...standing.value, isRunning: false, error: [messageOf(error), ...fields].join('\n') }
  }
}

/** Lets the step that runs end, and takes no other. */
export function stopAction(): void {
  standing.value = { ...standing.value, isStopped: true }
}

/** Closes the dialog; what was changed is told. */
export function leaveAction(): void {
  const action = askedAction.value
  const { changed, error } = standing.value
  askedAction.value = undefined
  const isTaken = changed > 0 || (standing.value.isRunning && error === undefined)
  standing.value = atFirst
  if (isTaken) action?.done?.(changed)
}
