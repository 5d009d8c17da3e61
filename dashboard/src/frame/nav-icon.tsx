/** The navigation icon: one stroke drawing for each place. */

const drawings: Readonly<Record<string, string>> = {
  Overview: 'M3 13h4v4H3zM8.5 8h4v9h-4zM14 3.5h3V17h-3z',
  Morgue: 'M5 17V8a5 5 0 0 1 10 0v9M3 17h14M8 9h4M10 7v5',
  Workers: 'M4 4h12v9H4zM7 17h6M10 13v4M7 8.5l2 1.5 4-3.5',
  Throttles: 'M3.5 14.5a7 7 0 1 1 13 0M10 12l3.5-4',
  Schedules: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM10 6v4.5l3 1.5',
  Search: 'M8.5 3a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM12.5 12.5 17 17',
}

export function NavIcon({ name }: { readonly name: string }) {
  return (
    <svg
      viewBox="0 0 20 20"
      class="size-4.5 shrink-0"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linejoin="round"
      stroke-linecap="round"
      aria-hidden="true"
    >
      <path d={drawings[name]} />
    </svg>
  )
}
