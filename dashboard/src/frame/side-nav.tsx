/** The side navigation: the places of the window; on narrow screens a bar at the foot of the page. */

import { session } from '../api/session-state.js'
import { type Destination, destinations } from '../state/key-bindings.js'
import { path } from '../state/page-address.js'
import { NavIcon } from './nav-icon.js'

/** Pages of one queue belong to the overview, which links to them. */
function isCurrent({ to }: Destination): boolean {
  if (to === './') return path.value === '/' || (path.value.startsWith('/queues/') && !path.value.endsWith('/morgue'))
  if (to === 'morgue') return path.value.endsWith('/morgue')
  return path.value === `/${to}` || path.value.startsWith(`/${to}/`)
}

const searchPlace: Destination = { key: '/', to: 'search', title: 'Search' }

function shownPlaces(): readonly Destination[] {
  const features = session.value?.features
  return destinations.filter(({ feature }) => feature === undefined || features === undefined || features[feature])
}

export function SideNav() {
  return (
    <ul class="grid gap-0.5">
      {shownPlaces().map((place) => (
        <li key={place.to}>
          <a
            href={place.to}
            aria-current={isCurrent(place) ? 'page' : undefined}
            class="flex h-8 items-center gap-2.5 rounded-md px-2.5 text-muted hover:bg-sunk hover:text-ink aria-[current]:bg-wash aria-[current]:font-medium aria-[current]:text-accent"
          >
            <NavIcon name={place.title} />
            {place.title}
          </a>
        </li>
      ))}
    </ul>
  )
}

export function FootNav() {
  return (
    <ul class="flex justify-around">
      {[...shownPlaces(), searchPlace].map((place) => (
        <li key={place.to} class="flex-1">
          <a
            href={place.to}
            aria-current={isCurrent(place) ? 'page' : undefined}
            class="grid h-13 place-items-center content-center gap-0.5 text-[0.6875rem] text-muted aria-[current]:font-medium aria-[current]:text-accent"
          >
            <NavIcon name={place.title} />
            {place.title}
          </a>
        </li>
      ))}
    </ul>
  )
}
