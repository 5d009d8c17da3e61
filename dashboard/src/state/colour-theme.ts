/** The colour theme: the system's, light, or dark; kept in this browser. */

import { signal } from '@preact/signals'

export const themes = ['auto', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const key = 'millrace:theme'

function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(key)
    return themes.find((one) => one === stored) ?? 'auto'
  } catch {
    // Storage may be forbidden.
    return 'auto'
  }
}

export const theme = signal<Theme>(storedTheme())

export function setTheme(chosen: Theme): void {
  theme.value = chosen
  showTheme()
  try {
    localStorage.setItem(key, chosen)
  } catch {
    // It then lasts as long as the page.
  }
}

export function showTheme(): void {
  document.documentElement.classList.remove('light', 'dark')
  if (theme.value !== 'auto') document.documentElement.classList.add(theme.value)
}
