/** `millrace/web`: a window on a mill (page, JSON API and streams) for applications that mount it. */

export type { Authorize } from './access/access.js'
export type { Viewer } from './access/viewer.js'
export { type Peer, type WebHandler, webHandler } from './web-handler.js'
export type { Audit } from './window/audit.js'
export type { WebOptions } from './window/web-options.js'
