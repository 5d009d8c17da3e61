/** The options of a window: what users give, and their check. */

import * as v from 'valibot'
import { ConfigError } from '../../core/errors.js'
import type { JobRecord } from '../../core/job.js'
import { callable, exactly, parsed } from '../../core/values/option-check.js'
import { isHost } from '../access/host-list.js'
import type { Viewer } from '../access/viewer.js'
import type { Audit } from './audit.js'

export interface WebOptions {
  /** Where it lies in the paths that it is asked by, as `/jobs`. Default: what Express says, else at the root. */
  readonly basePath?: string
  /** Who knows it may do everything. At least 16 characters; `openssl rand -base64 24` makes one. */
  readonly token?: string
  /** Whether the request is let in, and as whom; `true` is an operator. Asked if the request has neither the token nor a session. */
  readonly authorize?: (request: Request) => boolean | Viewer | Promise<boolean | Viewer>
  /** The names by which it may be asked beside loopback: `jobs.example.org`, or with a port. Default: none. */
  readonly hosts?: readonly string[]
  /** Whether it refuses every change. Default false. */
  readonly readOnly?: boolean
  /** What is shown of a job, instead of the job. Default: all of it. */
  readonly redact?: (job: JobRecord) => JobRecord
  /** Whether inputs, metas, results and checkpoints are left out. Default false. */
  readonly hidePayloads?: boolean
  /** Hears of each action: who did what to how many. Default: only the logger of the mill does. */
  readonly onAction?: (audit: Audit) => void
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

const tokenForm = '16 to 1,024 characters of ASCII without spaces; `openssl rand -base64 24` makes such a token'

export function isToken(text: string): boolean {
  return /^[\x21-\x7e]{16,1024}$/.test(text)
}

/** Throws `ConfigError` with every mistake. */
export function checkedWebOptions(options: WebOptions): CheckedWebOptions {
  const checked = parsed(schema, options, what)
  // Not by the schema, whose mistakes show what was given.
  if (checked.token !== undefined && !isToken(checked.token))
    throw new ConfigError(what, [{ path: 'token', message: `must be ${tokenForm}` }])
  return checked
}
