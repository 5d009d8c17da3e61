/** The press button: a button in one of four kinds, whose action may take time. */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { sayError } from '../state/toast-list.js'

interface ButtonProps {
  readonly children: ComponentChildren
  readonly onPress?: () => unknown
  /** `main`: for the main action of a page or dialog. Default `plain`. */
  readonly kind?: 'plain' | 'main' | 'danger' | 'quiet'
  readonly isDisabled?: boolean
  /** Default `button`. */
  readonly type?: 'button' | 'submit'
  /** The label of a button whose children say too little. */
  readonly label?: string
  readonly hint?: string
}

/** It cannot be pressed again while the promise of `onPress` is pending; if that rejects, a toast says why. */
export function Button({ children, onPress, kind = 'plain', isDisabled, type = 'button', label, hint }: ButtonProps) {
  const [isBusy, setBusy] = useState(false)
  const press = async () => {
    const pending = onPress?.()
    if (!(pending instanceof Promise)) return
    setBusy(true)
    try {
      await pending
    } catch (error) {
      sayError(error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <button
      type={type}
      class={`button button-${kind}`}
      disabled={isDisabled === true || isBusy}
      aria-busy={isBusy}
      aria-label={label}
      title={hint}
      onClick={() => void press()}
    >
      {children}
    </button>
  )
}
