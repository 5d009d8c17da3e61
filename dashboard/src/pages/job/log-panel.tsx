/** The log panel: the log of a job, live, with a search and a download as a text file. */

import { useState } from 'preact/hooks'
import { LogView } from '../../parts/log-view.js'
import { Button } from '../../parts/press-button.js'
import { exactCount } from '../../words/count-words.js'
import { gapLine, linesWith } from './followed-log.js'
import { Panel } from './titled-panel.js'

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
