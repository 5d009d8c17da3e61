/** The rules dialog: other limits for a throttle, for all queues that share it. */

import { useState } from 'preact/hooks'
import type { ThrottleRule } from '../../api/answers.js'
import { put } from '../../api/api-client.js'
import { ApiError, type FieldMistake, messageOf } from '../../api/api-error.js'
import { at } from '../../api/api-path.js'
import { Field, mistakeAt } from '../../parts/form-field.js'
import { Dialog, DialogButtons } from '../../parts/modal-dialog.js'
import { Button } from '../../parts/press-button.js'
import { say } from '../../state/toast-list.js'
import { safeText, shortText } from '../../words/safe-text.js'
import { rulesOf, type TypedRule, typedRule } from './typed-rule.js'

interface RulesProps {
  /** One of those that share the throttle. */
  readonly queue: string
  readonly queues: readonly string[]
  readonly rules: readonly ThrottleRule[]
  readonly onClose: () => void
  /** Called when the limits were changed. */
  readonly onDone: () => void
}

interface Failure {
  readonly text: string
  readonly fields: readonly FieldMistake[]
}

export function RulesDialog({ queue, queues, rules, onClose, onDone }: RulesProps) {
  const [typed, setTyped] = useState(() => rules.map(typedRule))
  const [failure, setFailure] = useState<Failure>()
  const [isSending, setSending] = useState(false)
  const change = (i: number, part: Partial<TypedRule>) =>
    setTyped(typed.map((rule, at) => (at === i ? { ...rule, ...part } : rule)))
  const send = async () => {
    setSending(true)
    try {
      await put(at`queues/${queue}/throttle`, { rules: rulesOf(typed) })
      say('The limits are changed.')
      onDone()
      onClose()
    } catch (error) {
      setFailure({ text: messageOf(error), fields: error instanceof ApiError ? error.fields : [] })
    } finally {
      setSending(false)
    }
  }
  const names = queues.map((name) => shortText(safeText(name))).join(', ')
  return (
    <Dialog title="Change the limits" onClose={onClose} isBusy={isSending}>
      <form
        class="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
      >
        <p class="wrap-anywhere text-muted">
          For {names}, from now on and in every process; starts so far count on. A mill that declares other limits is
          refused: change the configuration too.
        </p>
        {typed.map((rule, i) => (
          <RuleFields
            key={rule.key}
            rule={rule}
            mistakes={failure?.fields.filter(({ path }) => path.startsWith(`rules.${i}`)) ?? []}
            at={`rules.${i}`}
            onChange={(part) => change(i, part)}
            onRemove={typed.length > 1 ? () => setTyped(typed.toSpliced(i, 1)) : undefined}
          />
        ))}
        <div>
          <Button onPress={() => setTyped([...typed, typedRule()])}>Add a window</Button>
        </div>
        <p role="alert" class="wrap-anywhere whitespace-pre-line text-bad empty:hidden">
          {failure?.text}
        </p>
        <DialogButtons>
          <Button onPress={onClose}>Cancel</Button>
          <Button type="submit" kind="main" isDisabled={isSending}>
            Change the limits
          </Button>
        </DialogButtons>
      </form>
    </Dialog>
  )
}

interface RuleProps {
  readonly rule: TypedRule
  readonly at: string
  readonly mistakes: readonly FieldMistake[]
  readonly onChange: (part: Partial<TypedRule>) => void
  readonly onRemove: (() => void) | undefined
}

function RuleFields({ rule, at: path, mistakes, onChange, onRemove }: RuleProps) {
  return (
    <fieldset class="grid gap-2 rounded-md border border-line p-3">
      <legend class="px-1 text-sm text-muted">Window</legend>
      <div class="grid grid-cols-2 gap-3">
        <Field
          label="Starts"
          value={rule.limit}
          onInput={(limit) => onChange({ limit })}
          mistake={mistakeAt(mistakes, `${path}.limit`)}
          type="number"
          isRequired
        />
        <Field
          label="In any"
          value={rule.window}
          onInput={(window) => onChange({ window })}
          hint="such as 10s, 1m, 1h"
          mistake={mistakeAt(mistakes, `${path}.window`)}
          isRequired
        />
      </div>
      <div class="flex flex-wrap items-end gap-x-4 gap-y-2">
        <label class="flex min-h-8 items-center gap-2">
          <input
            type="checkbox"
            checked={rule.isModerate}
            onChange={(event) => onChange({ isModerate: event.currentTarget.checked })}
          />
          Evenly spaced
        </label>
        {rule.isModerate && (
          <Field
            label="Catches up beyond"
            value={rule.buffer}
            onInput={(buffer) => onChange({ buffer })}
            hint="unused starts; empty: never"
            mistake={mistakeAt(mistakes, `${path}.elastic`)}
            type="number"
          />
        )}
        {onRemove && (
          <div class="ms-auto">
            <Button kind="quiet" onPress={onRemove}>
              Remove
            </Button>
          </div>
        )}
      </div>
    </fieldset>
  )
}
