/** The modal dialog: the browser's own, which holds the focus and gives it back. */

import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  /** Whether it cannot be closed now. Default false. */
  readonly isBusy?: boolean
}

/** It is open as long as it is rendered. */
export function Dialog({ title, onClose, children, isBusy = false }: DialogProps) {
  const own = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = own.current
    const before = document.activeElement
    dialog?.showModal()
    return () => {
      dialog?.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={own}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        if (!isBusy) onClose()
      }}
    >
      <div class="grid gap-4 p-5">
        <h2 id={id} class="text-lg font-semibold text-balance wrap-anywhere">
          {title}
        </h2>
        {children}
      </div>
    </dialog>
  )
}

export function DialogButtons({ children }: { readonly children: ComponentChildren }) {
  return <div class="mt-1 flex flex-wrap justify-end gap-2">{children}</div>
}
