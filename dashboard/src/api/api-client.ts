/**
 * The API client: sends requests to the window's `api/v1`, keeps the session, and throws an `ApiError` for a refusal.
 * `at` makes the paths.
 */

import { computed, signal } from '@preact/signals'
import type { Changed, Session } from './answers.js'
import { ApiError, isAborted, toldError } from './api-error.js'
import { apiAddress, queryText } from './api-path.js'
import { bodyText } from './typed-json.js'

type Query = Readonly<Record<string, string | number | undefined>>

interface AskOptions {
  readonly query?: Query
  /** Aborts the request, which then rejects with an `AbortError`. */
  readonly signal?: AbortSignal
}

/** Reads. */
export async function get<T>(path: string, { query = {}, signal }: AskOptions = {}): Promise<T> {
  return answerOf(await sent(path + queryText(query), signal === undefined ? {} : { signal }))
}

export function post<T = Changed>(path: string, body: object = {}, headers: Record<string, string> = {}): Promise<T> {
  return change('POST', path, body, headers)
}

export function put<T = Changed>(path: string, body: object): Promise<T> {
  return change('PUT', path, body)
}

export function remove<T = Changed>(path: string): Promise<T> {
  return change('DELETE', path)
}

/** The viewer of this page, what they may do, and what the store supports. Undefined until it is known. */
export const session = signal<Session | undefined>(undefined)

/** Whether the window wants a token first: the page shows the log-in. */
export const isLoggedOut = signal(false)

/** Whether actions are offered at all. */
export const mayChange = computed(() => session.value?.role === 'operator' && !session.value.readOnly)

/** Whether jobs may be shown otherwise than they are. */
export const redacts = computed(() => session.value?.redacts === true)

/** Loads the session of this viewer. */
export async function loadSession(): Promise<void> {
  session.value = await get<Session>('session')
  isLoggedOut.value = false
}

async function change<T>(
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
  isAgain = false,
): Promise<T> {
  const csrf = session.value?.csrf
  try {
    const response = await sent(path, {
      method,
      headers: {
        'x-millrace': '1',
        ...(csrf !== undefined && { 'x-csrf-token': csrf }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: bodyText(body) }),
    })
    return await answerOf(response)
  } catch (error) {
    // Somebody has logged in again in another tab.
    if (isAgain || !(error instanceof ApiError) || error.code !== 'csrf') throw error
    await loadSession()
    return change(method, path, body, headers, true)
  }
}

async function sent(path: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(apiAddress(path), { credentials: 'same-origin', ...options })
  } catch (error) {
    if (isAborted(error)) throw error
    throw new ApiError(0, 'network', 'The server does not answer. Check that it runs and that you are connected.')
  }
}

async function answerOf<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T
  const error = await toldError(response)
  if (error.status === 401 && error.code === 'unauthorized') isLoggedOut.value = true
  throw error
}
