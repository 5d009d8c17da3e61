/** The log panel: the log of a job, live, with a search and a download as a text file. */

import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Panel } from '../../parts/page-head.js'
import { Button } from '../../parts/press-button.js'
import { countOf, exactCount } from '../../words/count-words.js'
import { safeLines } from '../../words/safe-text.js'
import { gapLine, linesWith } from './followed-log.js'

interface LogPanelProps {
  readonly text: string
  readonly isLive: boolean
  /** For the name of the file. */
  readonly id: string
}

export function LogPanel({ text, isLive, id }: LogPanelProps) {
  const [wanted, setWanted] = useState('')
  const { lines, all } = linesWith(text, wanted)
  return (
    <Panel
      title="Log"
      aside={
        text !== '' && (
          <div class="flex flex-wrap items-center gap-2">
            <input
              type="search"
              class="field w-44"
              placeholder="Find in the log"
              aria-label="Find in the log"
              value={wanted}
              onInput={(event) => setWanted(event.currentTarget.value)}
            />
            <Button onPress={() => download(text, id)}>Download</Button>
          </div>
        )
      }
    >
      {text === '' ? (
        <p class="text-muted">
          {isLive ? 'It has logged nothing yet.' : 'It has logged nothing, or nothing is kept of it.'}
        </p>
      ) : (
        <>
          {wanted !== '' && (
            <p class="text-sm text-muted" aria-live="polite">
              {exactCount(lines.length)} of {exactCount(all)} lines
            </p>
          )}
          <LogView text={lines.join('\n')} label="Log of the job" isLive={isLive} />
          {text.includes(gapLine) && <p class="text-sm text-muted">It logged faster than it could be read here.</p>}
        </>
      )}
    </Panel>
  )
}

function download(text: string, id: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain;charset=utf-8' }))
  link.download = `${
    id
      .replace(/[^\w.-]+/g, '_')
      .replace(/^\.+/, '')
      .slice(0, 80) || 'job'
  }.log`
  link.click()
  // Not before the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

const mostLines = 2_000

interface LogProps {
  readonly text: string
  readonly label: string
  /** Whether more lines may come. Default false. */
  readonly isLive?: boolean
}

/**
 * Lines as they come. The last line stays in sight unless the reader scrolls up. Of a long log the end is
 * shown.
 */
function LogView({ text, label, isLive = false }: LogProps) {
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
        <span>{isLive ? (follows ? 'Follows new lines.' : 'Paused while you read.') : 'Complete.'}</span>
        {!follows && (
          <button type="button" class="link" onClick={() => setFollows(true)}>
            Go to the end
          </button>
        )}
      </div>
    </div>
  )
}
