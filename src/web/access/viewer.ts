/** A viewer: the user of a window, and what they may do. */

/** A `viewer` looks; an `operator` also changes. */
export type Role = 'viewer' | 'operator'

export interface Viewer {
  /** The name in the audit. */
  readonly name: string
  readonly role: Role
}

/** A viewer, and how they were recognised. A session came by a cookie and needs its CSRF token to change something. */
export interface KnownViewer extends Viewer {
  readonly by: 'token' | 'session' | 'authorize' | 'loopback'
  readonly csrf?: string
}
