/** The router: finds the endpoint of a request, checks the viewer and the request, and answers. */

import { Hono } from 'hono'
import * as v from 'valibot'
import { defined } from '../../core/values/defined.js'
import { exactJson, recordJson } from '../../core/values/json.js'
import { exactly, mistakesIn } from '../../core/values/option-check.js'
import type { Access, KnownViewer } from '../access.js'
import type { ApiRequest } from '../api-request.js'
import { type Audit, tellAudit } from '../audit.js'
import { changedDespite, failureOf, WebRefusal } from '../failure.js'
import type { MillWindow } from '../mill-window.js'
import type { Streams } from '../streams.js'
import { type Endpoint, type EndpointCall, paramsOf } from './endpoint.js'
import { jobEndpoints } from './job-endpoints.js'
import { morgueEndpoints } from './morgue-endpoints.js'
import { openApiOf } from './openapi.js'
import { overviewEndpoints } from './overview-endpoints.js'
import { queueEndpoints } from './queue-endpoints.js'
import { scheduleEndpoints } from './schedule-endpoints.js'
import { sessionEndpoints } from './session-endpoints.js'
import { idInQuery, paramShapes } from './shapes.js'
import { throttleEndpoints } from './throttle-endpoints.js'
import { workerEndpoints } from './worker-endpoints.js'

interface Bindings {
  readonly Bindings: ApiRequest
}

/** Of a larger body only the first mistake is named: to list all takes as long as its sender likes. */
const mostListedBytes = 16_384
const nothing = { value: {}, bytes: 0 }

/** The path of the API below the window. */
export const apiPath = '/api/v1'

/** All endpoints of the API, in the order of their description. If two match an address the first is used. */
export const endpoints: readonly Endpoint[] = [
  ...sessionEndpoints,
  ...overviewEndpoints,
  ...queueEndpoints,
  ...throttleEndpoints,
  ...jobEndpoints,
  ...morgueEndpoints,
  ...workerEndpoints,
  ...scheduleEndpoints,
]

/** Takes the part of the path below the window. The host is checked before. */
export function apiOf(window: MillWindow, access: Access, streams: Streams): (asked: ApiRequest) => Promise<Response> {
  const app = new Hono<Bindings>().basePath(apiPath)
  app.get('/openapi.json', async ({ env }) => {
    access.checkOrigin(env)
    await access.viewer(env)
    return jsonResponse(openApiOf(endpoints))
  })
  for (const one of endpoints)
    app.on(one.method, one.path, ({ env, req }) =>
      answer({ window, access, streams }, one, env, req.param() as Record<string, string>),
    )
  for (const path of new Set(endpoints.map((one) => one.path))) app.all(path, () => refuseMethod(path))
  app.notFound(() => {
    throw new WebRefusal('not-found', 'the API has no such address: `GET openapi.json` lists its addresses.')
  })
  app.onError((error) => {
    throw error
  })
  return async (asked) => {
    try {
      const url = new URL(asked.path, 'http://window')
      const request = new Request(url, { method: asked.request.method })
      return await app.fetch(request, asked)
    } catch (error) {
      return failureResponse(error, window)
    }
  }
}

/** The error as a response, in JSON. */
export function failureResponse(error: unknown, window: MillWindow): Response {
  const { status, code, message, fields, changed, headers } = failureOf(error, window.mill.logger)
  return jsonResponse({ error: { code, message, ...defined({ fields, changed }) } }, status, headers)
}

function refuseMethod(path: string): never {
  const allow = endpoints.filter((one) => one.path === path).map(({ method }) => method)
  throw new WebRefusal('method-not-allowed', `this address takes ${allow.join(', ')}.`, { allow: allow.join(', ') })
}

async function answer(
  on: Pick<EndpointCall<never, never>, 'window' | 'access' | 'streams'>,
  one: Endpoint,
  asked: ApiRequest,
  given: Readonly<Record<string, string>>,
): Promise<Response> {
  const { access, window } = on
  access.checkOrigin(asked)
  const viewer = one.isOpen ? undefined : await access.viewer(asked)
  if (viewer === undefined) access.checkHeader(asked.request)
  else if (one.method !== 'GET') access.checkChange(asked, viewer)
  const { named, rest } = namedByQuery(given, queryOf(asked.query))
  const params = checkedParams(one, named)
  const query = checked(exactly(one.query ?? {}), rest, 'the query')
  const sent = one.method === 'GET' ? nothing : await bodyOf(asked.request, { isOpen: one.isOpen ?? false })
  const body = checked(one.body ?? exactly({}), sent.value, 'the body', sent.bytes > mostListedBytes ? 'first' : 'all')
  const call = { ...on, asked, viewer, params, query, body }
  const run = () => one.run(call as never)
  const found =
    one.action === undefined || viewer === undefined
      ? await run()
      : await audited(one.action, { asked, viewer, params, body }, window, run)
  return found instanceof Response ? found : jsonResponse(found, one.status)
}

function checkedParams({ path }: Endpoint, given: Readonly<Record<string, string>>): Record<string, string> {
  const names = paramsOf(path)
  return checked(
    exactly(Object.fromEntries(names.map((name) => [name, paramShapes[name]!]))),
    given,
    'the address',
  ) as Record<string, string>
}

/** The names in the address, including an id that the query has in place of the path; and the rest of the query. */
function namedByQuery(
  given: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>>,
): { readonly named: Readonly<Record<string, string>>; readonly rest: Readonly<Record<string, string>> } {
  const { id, ...rest } = query
  if (given['id'] !== idInQuery || id === undefined) return { named: given, rest: query }
  return { named: { ...given, id }, rest }
}

/** Throws a refusal for a parameter that is given twice. */
function queryOf(query: URLSearchParams): Record<string, string> {
  const names = [...query.keys()]
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined) throw new WebRefusal('argument-invalid', `the query gives '${twice.slice(0, 100)}' twice.`)
  return Object.fromEntries(query)
}

/** The most bytes of one body. */
const mostBytes = 1_048_576
/** The most bytes of a body that anybody may send: a log-in. */
const mostOpenBytes = 4_096

interface RequestBody {
  readonly value: object
  readonly bytes: number
}

/**
 * The object in the body; an empty one if nothing was sent. Throws a refusal for another type, too many bytes, or a
 * body that is no object.
 */
async function bodyOf(request: Request, { isOpen = false } = {}): Promise<RequestBody> {
  const most = isOpen ? mostOpenBytes : mostBytes
  const declared = Number(request.headers.get('content-length') ?? 0)
  if (declared > most) throw tooLarge(most)
  const text = request.body === null ? '' : await textOf(request.body, most)
  const type = request.headers.get('content-type') ?? ''
  if (text !== '' && !/^application\/json\s*(?:;\s*charset=utf-?8\s*)?$/i.test(type))
    throw new WebRefusal(
      'content-type',
      `the body must be JSON, with \`content-type: application/json\`; it came as '${type.slice(0, 100)}'.`,
    )
  const value = text === '' ? {} : parsedJson(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value, bytes: text.length }
  throw new WebRefusal('argument-invalid', 'the body must be an object in JSON, as {"ids":["welcome-42"]}.')
}

function parsedJson(text: string): unknown {
  try {
    return exactJson(text)
  } catch {
    throw new WebRefusal(
      'argument-invalid',
      'the body is not JSON. Check its quotes and commas, and that all of it was sent.',
    )
  }
}

async function textOf(body: ReadableStream<Uint8Array>, most: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength
    // Leaving the loop cancels the rest.
    if (bytes > most) throw tooLarge(most)
    chunks.push(chunk)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch {
    throw new WebRefusal('argument-invalid', 'the body is not text in UTF-8.')
  }
}

function tooLarge(most: number): WebRefusal {
  const remedy = most === mostBytes ? ' Send jobs in several requests.' : ''
  return new WebRefusal('payload-too-large', `a body has at most ${most} bytes here.${remedy}`)
}

/** Throws a refusal that lists every mistake, or the first alone. */
function checked(schema: v.GenericSchema, value: unknown, what: string, which: 'all' | 'first' = 'all'): unknown {
  const result = v.safeParse(schema, value, { abortEarly: true })
  if (result.success) return result.output
  const fields = mistakesIn(schema, value, which)
  const lines = fields.map(({ path, message }) => `${path}: ${message}`)
  throw new WebRefusal(
    'argument-invalid',
    `${what} of the request is not valid: ${lines.slice(0, 10).join('; ')}`,
    {},
    fields,
  )
}

/** Runs an action, and reports its outcome to the audit. */
async function audited(
  action: string,
  {
    asked,
    viewer,
    params,
    body,
  }: { readonly asked: ApiRequest; readonly viewer: KnownViewer; readonly params: Audit['on']; readonly body: unknown },
  { mill, options }: MillWindow,
  run: () => Promise<unknown>,
): Promise<unknown> {
  const which = whichText(action, body)
  const begun = {
    at: new Date(),
    who: viewer.name,
    ...(asked.address !== '' && { address: asked.address }),
    ...{ action, on: params, ...defined({ which }) },
  }
  try {
    const answer = await run()
    const { changed } = answer as { readonly changed?: number }
    tellAudit({ ...begun, ...defined({ changed }) }, mill.logger, options.onAction)
    return answer
  } catch (error) {
    const changed = changedDespite(error)
    tellAudit({ ...begun, ...defined({ changed }), error: failureCode(error) }, mill.logger, options.onAction)
    throw error
  }
}

function failureCode(error: unknown): string {
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' ? code : 'internal'
}

function whichText(action: string, body: unknown): string | undefined {
  if (action === 'job.signal') return (body as { readonly signal: string }).signal
  if (action === 'job.forget-step') return (body as { readonly step: string }).step
  const { ids, all, failed, where, jobs } = body as {
    readonly [K in 'ids' | 'all' | 'failed' | 'where' | 'jobs']?: unknown
  }
  if (Array.isArray(ids)) return `${ids.length} by id`
  if (Array.isArray(jobs)) return `${jobs.length} jobs`
  if (where !== undefined) return 'filter'
  return all === true ? 'all' : failed === true ? 'failed' : undefined
}

function jsonResponse(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(recordJson(value), {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
  })
}
