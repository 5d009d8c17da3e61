/** The session: the viewer of this page, what they may do, and what the store supports. */

import { computed, signal } from '@preact/signals'
import type { Session } from './answers.js'

/** Undefined until it is known. */
export const session = signal<Session | undefined>(undefined)

/** Whether the window wants a token first: the page shows the log-in. */
export const isLoggedOut = signal(false)

/** Whether actions are offered at all. */
export const mayChange = computed(() => session.value?.role === 'operator' && !session.value.readOnly)
