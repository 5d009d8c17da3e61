/** The page shell: the frame of every page: navigation, connection state and theme. */

import type { ComponentChildren } from 'preact'
import { session } from '../api/session-state.js'
import { ConfirmDialog } from '../parts/confirm-dialog.js'
import { go } from '../state/page-address.js'
import { safeText } from '../words/safe-text.js'
import { ConnectionState } from './connection-state.js'
import { KeyHelp } from './key-help.js'
import { FootNav, SideNav } from './side-nav.js'
import { ThemeSwitch } from './theme-switch.js'
import { ToastStack } from './toast-stack.js'
import { WheelMark } from './wheel-mark.js'

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
        <input type="search" name="q" class="field" placeholder="Job id or task  /" aria-label="Search jobs" />
      </form>
    </search>
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
