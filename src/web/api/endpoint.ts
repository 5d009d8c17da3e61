/** An endpoint: one address and method of the API, with the shapes of its request, which also describe it. */

import type * as v from 'valibot'
import type { Access, KnownViewer } from '../access.js'
import type { ApiRequest } from '../api-request.js'
import type { MillWindow } from '../mill-window.js'
import type { Streams } from '../streams.js'

/** The checked parts of a request. */
export interface EndpointCall<Query, Body> {
  readonly window: MillWindow
  readonly access: Access
  readonly streams: Streams
  readonly asked: ApiRequest
  readonly viewer: KnownViewer
  /** The names in the address. */
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  readonly body: Body
}

type Shape = v.GenericSchema<never, unknown> | v.GenericSchema

interface EndpointShape<Query extends v.ObjectEntries, Body extends Shape> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** `/queues/:queue/jobs/:id` */
  readonly path: string
  readonly summary: string
  /** For a change: its name in the audit. */
  readonly action?: string
  readonly query?: Query
  readonly body?: Body
  /** The status of a success. Default 200. */
  readonly status?: number
  /** The shape of a success. Default: any object. */
  readonly answer?: v.GenericSchema
  readonly isStream?: true
  /** Whether unknown viewers may use it too: to log in and out. Default false. */
  readonly isOpen?: true
  /** Returns the object to answer as JSON, or a response of its own. */
  readonly run: (
    call: EndpointCall<v.InferOutput<v.StrictObjectSchema<Query, undefined>>, v.InferOutput<Body>>,
  ) => Promise<unknown>
}

export interface Endpoint extends Omit<EndpointShape<v.ObjectEntries, Shape>, 'run'> {
  readonly run: (call: EndpointCall<never, never>) => Promise<unknown>
}

/** Gives an endpoint the types of its shapes. */
export function endpoint<const Query extends v.ObjectEntries, Body extends Shape>(
  shape: EndpointShape<Query, Body>,
): Endpoint {
  return shape as unknown as Endpoint
}

/** The names in an address: `['queue', 'id']`. */
export function paramsOf(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
}
