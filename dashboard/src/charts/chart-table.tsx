/** The chart table: the same figures as text, newest first; drawn when it is opened. */

import { useState } from 'preact/hooks'
import type { Series } from './chart-series.js'

interface ChartTableProps {
  readonly label: string
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly words: (value: number) => string
  readonly momentWords: (at: number) => string
}

const mostRows = 120

export function ChartTable({ label, times, series, words, momentWords }: ChartTableProps) {
  const [isOpen, setOpen] = useState(false)
  const places = times.map((_, i) => i).filter((i) => series.some(({ values }) => (values[i] ?? 0) > 0))
  return (
    <details class="text-xs" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="w-fit text-muted">Figures</summary>
      {isOpen && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached
        <section class="mt-1 max-h-60 overflow-auto" tabIndex={0} aria-label={`Figures: ${label}`}>
          <table class="w-full text-start">
            <thead>
              <tr>
                <th class="text-start font-medium">When</th>
                {series.map(({ name }) => (
                  <th key={name} class="text-end font-medium">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {places
                .slice(-mostRows)
                .reverse()
                .map((i) => (
                  <tr key={i}>
                    <td>{momentWords(times[i]!)}</td>
                    {series.map(({ name, values }) => (
                      <td key={name} class="text-end">
                        {values[i] === undefined ? '–' : words(values[i])}
                      </td>
                    ))}
                  </tr>
                ))}
            </tbody>
          </table>
          {places.length === 0 && <p class="text-muted">Nothing happened.</p>}
          {places.length > mostRows && <p class="text-muted">The last {mostRows} in which something happened.</p>}
        </section>
      )}
    </details>
  )
}
