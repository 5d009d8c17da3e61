/** The throttle dialog: gives a throttle other rules, with a row for each window. */

import { useState } from 'preact/hooks'
import type { ThrottleRule } from '../api/answers.js'
import { put } from '../api/api-client.js'
import { ApiError, type FieldMistake, messageOf } from '../api/api-error.js'
import { at } from '../api/api-path.js'
import { say } from '../state/toast-list.js'
import { safeText } from '../words/safe-text.js'
import { Field, mistakeAt } from './form-field.js'
import { Dialog, DialogButtons } from './modal-dialog.js'
import { Button } from './press-button.js'

interface ThrottleDialogProps {
  readonly queue: string
  /** All queues that share it. */
  readonly queues: readonly string[]
  readonly rules: readonly ThrottleRule[]
  readonly onClose: () => void
  /** Called after the change. */
  readonly onDone: () => void
}

interface RuleText {
  readonly limit: string
  readonly window: string
  readonly isEven: boolean
  /** Empty: it does not catch up. */
  readonly buffer: string
}

const units = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
  [1, 'ms'],
] as const

/** A duration as users type it: `90s`, `5m`. */
function durationText(ms: number): string {
  const [size, name] = units.find(([unit]) => ms % unit === 0) ?? [1, 'ms']
  return `${ms / size}${name}`
}

function textOf({ limit, windowMs, moderate, elasticBuffer }: ThrottleRule): RuleText {
  return {
    limit: String(limit),
    window: durationText(windowMs),
    isEven: moderate,
    buffer: elasticBuffer === undefined ? '' : String(elasticBuffer),
  }
}

function ruleOf({ limit, window, isEven, buffer }: RuleText) {
  return {
    limit: Number(limit),
    window: window.trim(),
    ...(isEven && { moderate: true, ...(buffer !== '' && { elastic: { buffer: Number(buffer) } }) }),
  }
}

const newRule: RuleText = { limit: '100', window: '1m', isEven: false, buffer: '' }

export function ThrottleDialog({ queue, queues, rules, onClose, onDone }: ThrottleDialogProps) {
  const [texts, setTexts] = useState(rules.map(textOf))
  const [mistakes, setMistakes] = useState<readonly FieldMistake[]>([])
  const [error, setError] = useState<string | undefined>(undefined)
  const change = (place: number, part: Partial<RuleText>) =>
    setTexts(texts.map((text, i) => (i === place ? { ...text, ...part } : text)))
  const send = async () => {
    try {
      await put(at`queues/${queue}/throttle`, { rules: texts.map(ruleOf) })
      say('The throttle has other limits now.')
      onDone()
      onClose()
    } catch (reason) {
      const fields = reason instanceof ApiError ? reason.fields : []
      setMistakes(fields)
      // A mistake shown at its field is not repeated.
      const isShown = fields.length > 0 && fields.every(({ path }) => /\.(?:limit|window)$/.test(path))
      setError(isShown ? undefined : messageOf(reason))
    }
  }
  return (
    <Dialog title="Change the limits" onClose={onClose}>
      <p class="text-muted">
        They hold at once, for{' '}
        {queues.length === 1
          ? 'this queue'
          : `${queues.length} queues: ${queues.slice(0, 10).map(safeText).join(', ')}`}
        . Starts so far count on. Declare the same in the configuration: a mill that declares others is refused.
      </p>
      {texts.map((text, i) => (
        <fieldset key={i} class="grid grid-cols-2 gap-3 rounded-md border border-line p-3">
          <legend class="px-1 text-sm text-muted">Window {i + 1}</legend>
          <Field
            label="Starts at most"
            type="number"
            value={text.limit}
            onInput={(limit) => change(i, { limit })}
            mistake={mistakeAt(mistakes, `rules.${i}.limit`) ?? mistakeAt(mistakes, `${i}.limit`)}
          />
          <Field
            label="In a window of"
            value={text.window}
            hint="as 30s, 5m or 1h"
            onInput={(window) => change(i, { window })}
            mistake={mistakeAt(mistakes, `rules.${i}.window`) ?? mistakeAt(mistakes, `${i}.window`)}
          />
          <label class="col-span-2 flex items-center gap-2">
            <input type="checkbox" checked={text.isEven} onChange={() => change(i, { isEven: !text.isEven })} />
            Evenly spaced
          </label>
          {text.isEven && (
            <Field
              label="May catch up while unused starts exceed"
              type="number"
              value={text.buffer}
              hint="empty: it does not"
              onInput={(buffer) => change(i, { buffer })}
            />
          )}
          {texts.length > 1 && (
            <div class="col-span-2">
              <Button kind="quiet" onPress={() => setTexts(texts.filter((_, place) => place !== i))}>
                Remove this window
              </Button>
            </div>
          )}
        </fieldset>
      ))}
      <div>
        <Button kind="quiet" onPress={() => setTexts([...texts, newRule])}>
          Add a window
        </Button>
      </div>
      {error !== undefined && (
        <p role="alert" class="whitespace-pre-line wrap-anywhere text-bad">
          {error}
        </p>
      )}
      <DialogButtons>
        <Button onPress={onClose}>Cancel</Button>
        <Button kind="main" onPress={send}>
          Change
        </Button>
      </DialogButtons>
    </Dialog>
  )
}
