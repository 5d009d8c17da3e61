/** The page shell: the frame of every page: navigation, connection state, theme, help and messages. */

import type { ComponentChildren } from 'preact'
import { session } from './api/api-client.js'
import { connection, storeFailure } from './api/live-stream.js'
import { ConfirmDialog } from './parts/confirm-dialog.js'
import { Dialog, DialogButtons } from './parts/modal-dialog.js'
import { Button } from './parts/press-button.js'
import { setTheme, theme, themes } from './state/colour-theme.js'
import { type Destination, destinations, isHelpOpen } from './state/key-bindings.js'
import { go, path } from './state/page-address.js'
import { dismiss, toasts } from './state/toast-list.js'
import { safeText } from './words/safe-text.js'

export function Shell({ children }: { readonly children: ComponentChildren }) {
  return (
    <div class="min-h-dvh md:grid md:grid-cols-[13rem_minmax(0,1fr)]">
      <button
        type="button"
        class="button button-main absolute start-2 top-2 z-20 not-focus:sr-only"
        onClick={() => document.querySelector<HTMLElement>('#main')?.focus()}
      >
        Skip to the content
      </button>
      <header class="flex h-12 items-center gap-3 border-b border-line bg-card px-4 md:sticky md:top-0 md:h-dvh md:flex-col md:items-stretch md:border-e md:border-b-0 md:p-3">
        <a href="./" class="flex items-center gap-2 font-semibold tracking-tight md:px-1.5 md:py-1">
          <WheelMark />
          Millrace
        </a>
        <SearchBox />
        <nav aria-label="Places" class="hidden md:block">
          <SideNav />
        </nav>
        <div class="ms-auto flex items-center gap-1 md:ms-0 md:mt-auto md:grid md:gap-2">
          <div class="hidden min-w-0 px-1.5 text-xs text-muted md:block">
            <Store />
          </div>
          <div class="flex items-center justify-between gap-1">
            <ConnectionState />
            <ThemeSwitch />
          </div>
        </div>
      </header>
      <main id="main" tabIndex={-1} class="min-w-0 px-4 pt-4 pb-24 outline-none md:px-6 md:pt-5 md:pb-10">
        <div class="mx-auto max-w-[100rem]">{children}</div>
      </main>
      <nav
        aria-label="Places"
        class="fixed inset-x-0 bottom-0 z-10 border-t border-line bg-card pb-[env(safe-area-inset-bottom)] md:hidden"
      >
        <FootNav />
      </nav>
      <ConfirmDialog />
      <KeyHelp />
      <ToastStack />
    </div>
  )
}

/** The sign of the project. */
export function WheelMark() {
  return (
    <svg viewBox="0 0 24 24" class="size-5.5 text-accent" fill="none" stroke="currentColor" aria-hidden="true">
      <circle cx="12" cy="12" r="7" stroke-width="2" />
      <path d="M12 2v20M2 12h20M5 5l14 14M19 5 5 19" stroke-width="1.5" stroke-linecap="round" />
    </svg>
  )
}

function SearchBox() {
  return (
    <search class="hidden md:block">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const text = String(new FormData(event.currentTarget).get('q') ?? '').trim()
          if (text !== '') go(`search?${new URLSearchParams({ q: text })}`)
        }}
      >
        <input type="search" name="q" class="field" placeholder="Job id or text  /" aria-label="Search jobs" />
      </form>
    </search>
  )
}

/** Pages of one queue belong to the overview, which links to them. */
function isCurrent({ to }: Destination): boolean {
  if (to === './') return path.value === '/' || (path.value.startsWith('/queues/') && !path.value.endsWith('/morgue'))
  if (to === 'morgue') return path.value.endsWith('/morgue')
  return path.value === `/${to}` || path.value.startsWith(`/${to}/`)
}

const searchPlace: Destination = { key: '/', to: 'search', title: 'Search' }

function shownPlaces(): readonly Destination[] {
  const features = session.value?.features
  return destinations.filter(({ feature }) => feature === undefined || features === undefined || features[feature])
}

/** The places of the window; on narrow screens a bar at the foot of the page. */
function SideNav() {
  return (
    <ul class="grid gap-0.5">
      {shownPlaces().map((place) => (
        <li key={place.to}>
          <a
            href={place.to}
            aria-current={isCurrent(place) ? 'page' : undefined}
            class="flex h-8 items-center gap-2.5 rounded-md px-2.5 text-muted hover:bg-sunk hover:text-ink aria-[current]:bg-wash aria-[current]:font-medium aria-[current]:text-accent"
          >
            <NavIcon name={place.title} />
            {place.title}
          </a>
        </li>
      ))}
    </ul>
  )
}

function FootNav() {
  return (
    <ul class="flex justify-around">
      {[...shownPlaces(), searchPlace].map((place) => (
        <li key={place.to} class="flex-1">
          <a
            href={place.to}
            aria-current={isCurrent(place) ? 'page' : undefined}
            class="grid h-13 place-items-center content-center gap-0.5 text-[0.6875rem] text-muted aria-[current]:font-medium aria-[current]:text-accent"
          >
            <NavIcon name={place.title} />
            {place.title}
          </a>
        </li>
      ))}
    </ul>
  )
}

const drawings: Readonly<Record<string, string>> = {
  Overview: 'M3 13h4v4H3zM8.5 8h4v9h-4zM14 3.5h3V17h-3z',
  Morgue: 'M5 17V8a5 5 0 0 1 10 0v9M3 17h14M8 9h4M10 7v5',
  Workers: 'M4 4h12v9H4zM7 17h6M10 13v4M7 8.5l2 1.5 4-3.5',
  Throttles: 'M3.5 14.5a7 7 0 1 1 13 0M10 12l3.5-4',
  Schedules: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM10 6v4.5l3 1.5',
  Search: 'M8.5 3a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM12.5 12.5 17 17',
}

/** One stroke drawing for each place. */
function NavIcon({ name }: { readonly name: string }) {
  return (
    <svg
      viewBox="0 0 20 20"
      class="size-4.5 shrink-0"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linejoin="round"
      stroke-linecap="round"
      aria-hidden="true"
    >
      <path d={drawings[name]} />
    </svg>
  )
}

/** The store and the viewer. */
function Store() {
  const { value } = session
  if (value === undefined) return null
  const rights = value.readOnly ? 'read-only' : value.role
  return (
    <>
      <div class="truncate" title={safeText(value.store)}>
        {safeText(value.store)}
      </div>
      <div class="truncate" title={safeText(value.user)}>
        {safeText(value.user)} · {rights}
      </div>
      <div>Millrace {value.version}</div>
    </>
  )
}

const connectionWords = {
  connecting: ['text-muted', '◌', 'Connecting'],
  open: ['text-good', '●', 'Live'],
  lost: ['text-bad', '○', 'Reconnecting'],
  paused: ['text-muted', '‖', 'Paused'],
} as const

/** Whether the page shows live data. */
function ConnectionState() {
  const failure = storeFailure.value
  const state = connection.value
  if (state === undefined) return <span />
  const [tone, sign, text] = failure === undefined ? connectionWords[state] : ['text-bad', '!', 'Store away']
  return (
    <output class="flex items-center gap-1.5 px-1.5 text-xs whitespace-nowrap text-muted" title={failure}>
      <span class={tone} aria-hidden="true">
        {sign}
      </span>
      {text}
    </output>
  )
}

const themeSigns = { auto: '◐', light: '☀\ufe0e', dark: '☾' } as const
const iconButton = 'grid size-8 place-items-center rounded-md text-muted hover:bg-sunk hover:text-ink'

/** From automatic to light to dark and round again; and the button for the key help. */
function ThemeSwitch() {
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
        <span aria-hidden="true">{themeSigns[theme.value]}</span>
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

const keys: readonly (readonly [keys: string, text: string])[] = [
  ...destinations.map(({ key, title }) => [`g ${key}`, `Go to: ${title}`] as const),
  ['/', 'Search or filter'],
  ['j', 'Next row'],
  ['k', 'Row before'],
  ['Enter', 'Open the row'],
  ['x', 'Select the row'],
  ['← →', 'Move along a chart that has the focus'],
  ['Esc', 'Close a dialog'],
  ['?', 'This help'],
]

/** The list of keys and their actions. */
function KeyHelp() {
  if (!isHelpOpen.value) return null
  const close = () => {
    isHelpOpen.value = false
  }
  return (
    <Dialog title="Keys" onClose={close}>
      <dl class="grid grid-cols-[auto_1fr] gap-x-5 gap-y-1.5">
        {keys.map(([key, text]) => (
          <div key={key} class="contents">
            <dt>
              <kbd class="rounded border border-line bg-sunk px-1.5 py-0.5 font-mono text-xs">{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <DialogButtons>
        <Button onPress={close}>Close</Button>
      </DialogButtons>
    </Dialog>
  )
}

/** Messages on finished and failed actions, in the corner; screen readers announce them. */
function ToastStack() {
  return (
    <div
      aria-live="polite"
      class="pointer-events-none fixed inset-x-4 bottom-18 z-20 grid justify-items-end gap-2 md:bottom-4"
    >
      {toasts.value.map(({ id, text, kind }) => (
        <div
          key={id}
          class={`panel pointer-events-auto flex max-w-md items-start gap-2 border-s-4 py-2 ps-3 pe-1 toast ${kind === 'failed' ? 'border-s-bad' : 'border-s-good'}`}
        >
          <p class="py-0.5 wrap-anywhere">{text}</p>
          <button
            type="button"
            aria-label="Dismiss"
            class="grid size-7 shrink-0 place-items-center rounded text-muted hover:text-ink"
            onClick={() => dismiss(id)}
          >
            <span aria-hidden="true">✕</span>
          </button>
        </div>
      ))}
    </div>
  )
}
