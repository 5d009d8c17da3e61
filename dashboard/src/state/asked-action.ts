/**
 * The asked action: an action that waits for its confirmation. It is taken in steps, until nothing is left or the user
 * stops it.
 */

import { type Signal, signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { Changed } from '../api/answers.js'
import { ApiError, messageOf } from '../api/api-error.js'

export interface AskedAction {
  /** As a question or a sentence: `Cancel 12 jobs?` */
  readonly title: string
  /** The effect, and the number of affected things. */
  readonly text: ComponentChildren
  /** The text of the button: `Cancel jobs`. */
  readonly verb: string
  /** Whether it loses something. Default false. */
  readonly isDangerous?: boolean
  /** Text to type before: the name of the queue. Default: none. */
  readonly typed?: string
  /** Takes one step; it is called again while the answer says `more`, unless `isOneStep`. */
  readonly act: () => Promise<Changed>
  /** Whether `more` does not mean "send again", as in a drain. Default false. */
  readonly isOneStep?: boolean
  /** Called at the end with the number of changed things: to report it, and to load again. */
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

/** Shows the dialog with this action. */
export function askToConfirm(action: AskedAction): void {
  standing.value = atFirst
  askedAction.value = action
}

/** Takes the confirmed action, step by step. */
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
    const told = error instanceof ApiError ? error : undefined
    const fields = told?.fields.map(({ path, message }) => `${path}: ${message}`) ?? []
    const changed = standing.value.changed + (told?.changed ?? 0)
    standing.value = { ...standing.value, changed, isRunning: false, error: [messageOf(error), ...fields].join('\n') }
  }
}

/** Lets the running step end, and takes no other. */
export function stopAction(): void {
  standing.value = { ...standing.value, isStopped: true }
}

/** Closes the dialog, and reports the changes made so far. */
export function leaveAction(): void {
  const action = askedAction.value
  const { changed, error } = standing.value
  askedAction.value = undefined
  const isTaken = changed > 0 || (standing.value.isRunning && error === undefined)
  standing.value = atFirst
  if (isTaken) action?.done?.(changed)
}
