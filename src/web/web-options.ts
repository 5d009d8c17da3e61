/** The options of a window, and their check. */

import * as v from 'valibot'
import { ConfigError } from '../core/errors.js'
import type { JobRecord } from '../core/job/job.js'
import { callable, exactly, parsed } from '../core/values/option-check.js'
import type { Authorize } from './access.js'
import type { Audit } from './audit.js'
import { isHost } from './host-list.js'

export interface WebOptions {
  /** The path of the dashboard, such as `/jobs`. Default: the mount path in Express, otherwise the root. */
  readonly basePath?: string | undefined
  /** A secret that allows everything. At least 16 characters; `openssl rand -base64 24` makes one. Default: none. */
  readonly token?: string | undefined
  /**
   * Decides whether the request is let in, and as whom; `true` is an operator. Called if the request has neither the
   * token nor a session. `incoming` is Node's own request with what your framework has put on it (a session, a user);
   * undefined for `window.fetch`. Default: none.
   */
  readonly authorize?: Authorize | undefined
  /** The host names of the dashboard besides loopback: `jobs.example.org`, or with a port. Default: none. */
  readonly hosts?: readonly string[] | undefined
  /** Whether it refuses every change. Default false. */
  readonly readOnly?: boolean | undefined
  /** Returns the part of a job to show, also of the jobs that a schedule enqueues. Default: all of it. */
  readonly redact?: ((job: JobRecord) => JobRecord) | undefined
  /** Whether inputs, metas, results and checkpoints are left out. Default false. */
  readonly hidePayloads?: boolean | undefined
  /** Called with each action: who did what to how many jobs. Default: only the mill's logger receives it. */
  readonly onAction?: ((audit: Audit) => void) | undefined
}

export type CheckedWebOptions = v.InferOutput<typeof schema>

const basePath = v.pipe(
  v.string(),
  v.regex(/^(?:\/[\w.~-]+)*\/?$/, "must begin with a slash, as '/jobs'"),
  v.transform((path) => path.replace(/\/$/, '')),
)

const schema = exactly({
  basePath: v.optional(basePath),
  token: v.optional(v.string()),
  authorize: v.optional(callable<NonNullable<WebOptions['authorize']>>()),
  hosts: v.optional(
    v.array(
      v.custom<string>(
        (host) => typeof host === 'string' && isHost(host),
        "must be a host, as 'jobs.example.org' or 'jobs.example.org:8443'",
      ),
    ),
    [],
  ),
  readOnly: v.optional(v.boolean(), false),
  redact: v.optional(callable<NonNullable<WebOptions['redact']>>()),
  hidePayloads: v.optional(v.boolean(), false),
  onAction: v.optional(callable<NonNullable<WebOptions['onAction']>>()),
})

const what = 'the options of webHandler()'

export const tokenForm = '16 to 1,024 characters of ASCII without spaces; `openssl rand -base64 24` makes such a token'

export function isToken(text: string): boolean {
  return /^[\x21-\x7e]{16,1024}$/.test(text)
}

/** Throws `ConfigError` with every mistake. */
export function checkedWebOptions(options: WebOptions): CheckedWebOptions {
  const checked = parsed(schema, options, what)
  // Checked here: the schema's mistakes would show the token.
  if (checked.token !== undefined && !isToken(checked.token))
    throw new ConfigError(what, [{ path: 'token', message: `must be ${tokenForm}` }])
  return checked
}
