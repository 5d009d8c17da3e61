/** The event channels: one channel of `node:diagnostics_channel` for each event, for tools that know no mill. */

import { type Channel, channel } from 'node:diagnostics_channel'

const channels = new Map<string, Channel>()

/**
 * The channel `millrace:<event>`.
 * @internal
 */
export function eventChannel(event: string): Channel {
  const known = channels.get(event)
  if (known !== undefined) return known
  const made = channel(`millrace:${event}`)
  channels.set(event, made)
  return made
}
