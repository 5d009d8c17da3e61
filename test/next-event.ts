/** The next event of a mill that fits: what tests wait for instead of sleeping. */

import type { EventMap, EventName, Mill } from 'millrace'

export function nextEvent<Name extends EventName>(
  mill: Pick<Mill, 'on'>,
  name: Name,
  fits: (event: EventMap[Name]) => boolean = () => true,
): Promise<EventMap[Name]> {
  return new Promise((resolve) => {
    const off = mill.on(name, (event) => {
      if (!fits(event)) return
      off()
      resolve(event)
    })
  })
}

/** The events of this name from now on, as they come. */
export function recorded<Name extends EventName>(mill: Pick<Mill, 'on'>, name: Name): EventMap[Name][] {
  const events: EventMap[Name][] = []
  mill.on(name, (event) => events.push(event))
  return events
}
