/**
 * The JSON view: a value as a tree whose parts are drawn when they are opened; of long lists and texts only the
 * beginning.
 */

import { useState } from 'preact/hooks'
import { countOf } from '../words/count-words.js'
import { safeText, shortText } from '../words/safe-text.js'
import { CopyButton } from './name-text.js'

const mostItems = 100
const mostText = 500

interface JsonProps {
  readonly value: unknown
  /** For screen readers and for the copy: `input`, `result`. */
  readonly label: string
}

export function JsonView({ value, label }: JsonProps) {
  return (
    <div class="relative overflow-x-auto rounded-md bg-sunk p-2.5 pe-10 font-mono text-sm">
      <Node value={value} isOpen />
      <div class="absolute end-1.5 top-1.5">
        <CopyButton text={JSON.stringify(value, undefined, 2) ?? ''} what={label} />
      </div>
    </div>
  )
}

interface NodeProps {
  readonly value: unknown
  readonly name?: string
  readonly isOpen?: boolean
}

function Node({ value, name, isOpen = false }: NodeProps) {
  const [isShown, setShown] = useState(isOpen)
  const [most, setMost] = useState(mostItems)
  if (typeof value !== 'object' || value === null)
    return (
      <div class="ps-4">
        <NodeName name={name} />
        <Plain value={value} />
      </div>
    )
  const entries = Object.entries(value)
  return (
    <details open={isShown} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary class="marker:text-muted">
        <NodeName name={name} />
        <span class="text-muted">
          {Array.isArray(value) ? `[${countOf(entries.length, 'item')}]` : `{${countOf(entries.length, 'field')}}`}
        </span>
      </summary>
      {isShown && (
        <div class="ms-1.5 border-s border-line ps-2.5">
          {entries.slice(0, most).map(([key, item]) => (
            <Node key={key} name={key} value={item} />
          ))}
          {entries.length > most && (
            <button type="button" class="link ps-4" onClick={() => setMost(most + mostItems)}>
              {countOf(entries.length - most, 'more', 'more')}
            </button>
          )}
        </div>
      )}
    </details>
  )
}

function NodeName({ name }: { readonly name: string | undefined }) {
  return name === undefined ? null : <span class="text-muted">{shortText(safeText(name), 80)}: </span>
}

function Plain({ value }: { readonly value: unknown }) {
  const [isWhole, setWhole] = useState(false)
  if (typeof value !== 'string') return <span class="text-accent">{String(value)}</span>
  const isLong = value.length > mostText && !isWhole
  return (
    <span class="whitespace-pre-wrap wrap-anywhere">
      "{safeText(isLong ? value.slice(0, mostText) : value)}
      {isLong ? (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          … {countOf(value.length - mostText, 'more character')}
        </button>
      ) : (
        '"'
      )}
    </span>
  )
}
