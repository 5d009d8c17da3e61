/** The endpoints of the session: who the viewer is, how they log in, and what the store of the mill supports. */

import * as v from 'valibot'
import { packageVersion } from '../../core/package-files.js'
import { defined } from '../../core/values/defined.js'
import { exactly } from '../../core/values/option-check.js'
import { endpoint } from './endpoint.js'
import { changed } from './shapes.js'

export const sessionEndpoints = [
  endpoint({
    method: 'GET',
    path: '/session',
    summary: 'The caller, and the abilities of the store',
    run: async ({ window: { mill, options }, viewer: { name, role, csrf } }) => {
      const store = await mill.adminParts.look()
      return {
        ...{
          user: name,
          role,
          readOnly: options.readOnly,
          redacts: options.redact !== undefined,
          ...defined({ csrf }),
        },
        ...{ store: mill.store.text, version: packageVersion() ?? 'unknown', namespace: mill.namespace },
        features: {
          schedules: store.schedules !== undefined,
          throttles: store.throttles !== undefined,
          live: store.live !== undefined,
          history: store.history !== undefined,
          workers: store.workers !== undefined,
          records: store.records !== undefined,
        },
      }
    },
  }),
  endpoint({
    method: 'POST',
    path: '/session',
    summary: 'Log in with the token; the session is a cookie',
    isOpen: true,
    body: exactly({ token: v.string() }),
    answer: changed,
    run: async ({ access, asked, body: { token } }) => cookieAnswer(access.logIn(token, asked)),
  }),
  endpoint({
    method: 'DELETE',
    path: '/session',
    summary: 'Log out',
    isOpen: true,
    answer: changed,
    run: async ({ access, asked }) => cookieAnswer(access.logOut(asked)),
  }),
]

function cookieAnswer(cookie: string): Response {
  return Response.json({ changed: 1, more: false }, { headers: { 'set-cookie': cookie } })
}
