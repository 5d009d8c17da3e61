/** A question over HTTP: every header is sent as it is told. */

import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'

export interface Answered {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The answer as JSON. */
  readonly json: never
}

export interface Asking {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Sent as it is, in the place of a body in JSON. */
  readonly raw?: string | Buffer
}

/** Asks by node's own client, which sends every header it is told to, Host and Origin too. */
export async function ask(url: string, { method = 'GET', headers = {}, body, raw }: Asking = {}): Promise<Answered> {
  const { origin, host } = new URL(url)
  const path = url.slice(origin.length) || '/'
  const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const asked = request(origin, {
    ...{ method, path, agent: false },
    headers: {
      host,
      ...(sent !== undefined && {
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(sent)),
      }),
      ...headers,
    },
  })
  asked.end(sent)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  const answer = await text(response)
  const json = () => JSON.parse(answer) as never
  const { statusCode, headers: told } = response
  return {
    ...{ status: statusCode!, headers: told, text: answer },
    get json() {
      return json()
    },
  }
}
