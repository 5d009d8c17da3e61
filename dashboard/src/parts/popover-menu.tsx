/** The popover menu: actions behind one button, above everything else; a click elsewhere or Escape closes it. */

import { useId, useRef } from 'preact/hooks'

export interface MenuItem {
  readonly text: string
  readonly onPick: () => void
  readonly isDangerous?: boolean
}

interface MenuProps {
  readonly label: string
  /** The text of the button. Default: three dots. */
  readonly text?: string
  readonly items: readonly MenuItem[]
}

const moves: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }

export function Menu({ label, text = '⋯', items }: MenuProps) {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const place = (isOpen: boolean) => {
    if (!isOpen || list.current === null || button.current === null) return
    const { bottom, top, right } = button.current.getBoundingClientRect()
    const { offsetHeight, offsetWidth, style } = list.current
    const isBelow = bottom + offsetHeight + 8 < innerHeight
    style.top = `${isBelow ? bottom + 4 : Math.max(4, top - offsetHeight - 4)}px`
    style.left = `${Math.max(4, Math.min(right, innerWidth - 4) - offsetWidth)}px`
    list.current.querySelector('button')?.focus()
  }
  const move = (event: KeyboardEvent) => {
    const step = moves[event.key]
    if (step === undefined || list.current === null) return
    event.preventDefault()
    const all = [...list.current.querySelectorAll('button')]
    all[(all.findIndex((one) => one.matches(':focus')) + step + all.length) % all.length]?.focus()
  }
  return (
    <>
      <button ref={button} type="button" class="button" popovertarget={id} aria-label={label} aria-haspopup="menu">
        {text}
      </button>
      <div
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        tabIndex={-1}
        class="menu"
        aria-label={label}
        onToggle={(event) => place(event.newState === 'open')}
        onKeyDown={move}
      >
        {items.map(({ text: itemText, onPick, isDangerous }) => (
          <button
            key={itemText}
            type="button"
            role="menuitem"
            class={`block w-full rounded px-2.5 py-1.5 text-start hover:bg-sunk ${isDangerous ? 'text-bad' : ''}`}
            onClick={() => {
              list.current?.hidePopover()
              onPick()
            }}
          >
            {itemText}
          </button>
        ))}
      </div>
    </>
  )
}
