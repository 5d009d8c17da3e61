/**
 * A logger: any object with these four methods, such as `console`, pino or winston. Millrace prints only through the
 * logger it is given.
 */

export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
}

const nothing = () => {}

export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }
