/** The press button: a button in one of four kinds; what it does may take its time. */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { sayError } from '../state/toast-list.js'

interface ButtonProps {
  readonly children: ComponentChildren
  readonly onPress?: () => unknown
  /** `main`: the one that a page or dialog is for. Default `plain`. */
  readonly kind?: 'plain' | 'main' | 'danger' | 'quiet'
  readonly isDisabled?: boolean
  /** Default `button`. */
  readonly type?: 'button' | 'submit'
  /** For a button whose children say too little. */
  readonly label?: string
  readonly hint?: string
}

/** While a promise that `onPress` returns is pending it cannot be pressed again; if it rejects, a toast says why. */
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
