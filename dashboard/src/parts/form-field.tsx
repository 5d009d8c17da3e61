/** The form field: a label, an input, a hint, and the mistake that the server found in it. */

import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import type { FieldMistake } from '../api/api-error.js'
import { query, setQuery } from '../state/page-address.js'

interface FieldProps {
  readonly label: string
  readonly value: string
  readonly onInput: (value: string) => void
  readonly hint?: ComponentChildren
  readonly mistake?: string | undefined
  /** More than 1: a text of several lines. Default 1. */
  readonly lines?: number
  readonly isRequired?: boolean
  /** Whether it is code, in a monospaced font. */
  readonly isCode?: boolean
  readonly placeholder?: string
  readonly type?: 'text' | 'password' | 'number' | 'search'
  /** Suggested values; others can be typed. */
  readonly choices?: readonly string[]
  /** Whether it has the focus at first. Default false. */
  readonly hasFocus?: boolean
}

export function Field({ label, value, onInput, hint, mistake, lines = 1, choices, ...rest }: FieldProps) {
  const id = useId()
  const own = useRef<HTMLInputElement & HTMLTextAreaElement>(null)
  useEffect(() => {
    if (rest.hasFocus) own.current?.focus()
  }, [])
  const props = {
    id,
    ref: own,
    value,
    class: `field ${rest.isCode ? 'font-mono text-sm' : ''}`,
    required: rest.isRequired ?? false,
    placeholder: rest.placeholder,
    'aria-invalid': mistake !== undefined,
    'aria-describedby': `${id}-about`,
    autocomplete: 'off',
    spellcheck: false,
    onInput: (event: { readonly currentTarget: { readonly value: string } }) => onInput(event.currentTarget.value),
  }
  return (
    <div class="grid content-start gap-1">
      <label for={id} class="text-sm font-medium">
        {label}
      </label>
      {lines > 1 ? (
        <textarea rows={lines} {...props} />
      ) : (
        <input type={rest.type ?? 'text'} list={choices && `${id}-choices`} {...props} />
      )}
      {choices && (
        <datalist id={`${id}-choices`}>
          {choices.map((choice) => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      )}
      <div id={`${id}-about`} class="text-xs">
        {mistake === undefined ? (
          <span class="text-muted">{hint}</span>
        ) : (
          <span class="text-bad" role="alert">
            {mistake}
          </span>
        )}
      </div>
    </div>
  )
}

interface SelectProps {
  readonly label: string
  readonly value: string
  readonly choices: readonly (readonly [value: string, text: string])[]
  readonly onChange: (value: string) => void
}

/** One choice out of few; its label is for screen readers only. */
export function Select({ label, value, choices, onChange }: SelectProps) {
  return (
    <select
      class="field w-auto"
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {choices.map(([choice, text]) => (
        <option key={choice} value={choice}>
          {text}
        </option>
      ))}
    </select>
  )
}

/** The first mistake at a path, or below it. */
export function mistakeAt(mistakes: readonly FieldMistake[], path: string): string | undefined {
  return mistakes.find((one) => one.path === path || one.path.startsWith(`${path}.`))?.message
}

interface SearchProps {
  /** The label for screen readers. */
  readonly label: string
  readonly placeholder: string
}

/** A filter of the loaded rows, kept in the address as `q`; the key `/` leads to it. */
export function SearchField({ label, placeholder }: SearchProps) {
  return (
    <input
      type="search"
      class="field sm:max-w-64"
      aria-label={label}
      placeholder={placeholder}
      value={query.value.get('q') ?? ''}
      onInput={(event) => setQuery({ q: event.currentTarget.value })}
    />
  )
}
