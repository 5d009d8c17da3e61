/** `millrace/web`: a window on a mill (page, JSON API and streams) for applications that mount it. */

export type { Authorize, Viewer } from './access.js'
export type { Audit } from './audit.js'
export { type Peer, type WebHandler, webHandler } from './web-handler.js'
export type { WebOptions } from './web-options.js'
