/**
 * The log view: lines as they come. The last line stays in sight unless the reader scrolls up. Of a long log the end is
 * shown.
 */

import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { countOf } from '../words/count-words.js'
import { safeLines } from '../words/safe-text.js'

const mostLines = 2_000

interface LogProps {
  readonly text: string
  readonly label: string
  /** Whether more lines may come. Default false. */
  readonly isLive?: boolean
}

export function LogView({ text, label, isLive = false }: LogProps) {
  const box = useRef<HTMLElement>(null)
  const [follows, setFollows] = useState(true)
  const lines = safeLines(text.replace(/\n$/, '')).split('\n')
  const left = Math.max(0, lines.length - mostLines)
  useLayoutEffect(() => {
    if (follows && box.current !== null) box.current.scrollTop = box.current.scrollHeight
  }, [text, follows])
  const scrolled = ({
    currentTarget: { scrollTop, clientHeight, scrollHeight },
  }: {
    readonly currentTarget: Element
  }) => setFollows(scrollTop + clientHeight >= scrollHeight - 8)
  return (
    <div>
      <section
        ref={box}
        aria-label={label}
        // A keyboard scrolls it, too.
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached
        tabIndex={0}
        class="h-80 overflow-auto rounded-md bg-sunk p-2.5 font-mono text-sm whitespace-pre-wrap wrap-anywhere"
        onScroll={scrolled}
      >
        {left > 0 && <p class="text-muted">{countOf(left, 'line')} before these</p>}
        {lines.slice(left).join('\n')}
      </section>
      <div class="mt-1 flex h-6 items-center justify-between text-xs text-muted">
        <span>{isLive ? (follows ? 'Follows what comes.' : 'Stands still while you read.') : 'Complete.'}</span>
        {!follows && (
          <button type="button" class="link" onClick={() => setFollows(true)}>
            Go to the end
          </button>
        )}
      </div>
    </div>
  )
}
