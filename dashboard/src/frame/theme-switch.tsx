/** The theme switch: from automatic to light to dark and round again; and the button for the key help. */

import { setTheme, theme, themes } from '../state/colour-theme.js'
import { isHelpOpen } from '../state/key-bindings.js'

const signs = { auto: '◐', light: '☀\ufe0e', dark: '☾' } as const
const iconButton = 'grid size-8 place-items-center rounded-md text-muted hover:bg-sunk hover:text-ink'

export function ThemeSwitch() {
  const next = themes[(themes.indexOf(theme.value) + 1) % themes.length]!
  return (
    <div class="flex">
      <button
        type="button"
        class={iconButton}
        aria-label={`Colours: ${theme.value}. Change to ${next}`}
        title={`Colours: ${theme.value}`}
        onClick={() => setTheme(next)}
      >
        <span aria-hidden="true">{signs[theme.value]}</span>
      </button>
      <button
        type="button"
        class={`${iconButton} max-md:hidden`}
        aria-label="Keys"
        title="Keys  ?"
        onClick={() => {
          isHelpOpen.value = true
        }}
      >
        <span aria-hidden="true">?</span>
      </button>
    </div>
  )
}
