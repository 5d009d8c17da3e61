/** The field editor: sets and removes the fields of a job by hand. */

import { useState } from 'preact/hooks'
import { mayChange, post } from '../../api/api-client.js'
import { type JobName, jobAddress } from '../../api/api-path.js'
import { Field, Select } from '../../parts/form-field.js'
import { Name } from '../../parts/name-text.js'
import { Panel } from '../../parts/page-head.js'
import { Button } from '../../parts/press-button.js'
import { say } from '../../state/toast-list.js'
import type { FieldValue } from '../../words/field-words.js'
import { safeText } from '../../words/safe-text.js'
import type { JobDetail } from './job-detail.js'

interface EditorProps {
  readonly job: JobDetail
  readonly name: JobName
  /** Whether nothing is kept of it any more. */
  readonly isGone: boolean
  /** Called after a field was changed. */
  readonly onChange: () => unknown
}

const kinds = [
  ['text', 'text'],
  ['number', 'number'],
  ['boolean', 'true or false'],
] as const

export function FieldEditor({ job: { fields = {}, state }, name, isGone, onChange }: EditorProps) {
  const [isAdding, setAdding] = useState(false)
  const set = async (changes: Readonly<Record<string, FieldValue | null>>, done: string) => {
    await post(jobAddress(name, '/fields'), changes)
    say(done)
    await onChange()
  }
  const all = Object.entries(fields)
  const mayEdit = mayChange.value && !isGone && name.part !== 'morgue' && state !== 'cancelled'
  if (all.length === 0 && !mayEdit) return null
  return (
    <Panel title="Fields" aside={mayEdit && !isAdding && <Button onPress={() => setAdding(true)}>Set a field</Button>}>
      {all.length === 0 && (
        <p class="text-sm text-muted">None. Handlers and operators note here what they look for later.</p>
      )}
      <dl class="grid grid-cols-[minmax(0,auto)_minmax(0,1fr)_auto] items-center gap-x-3 gap-y-1 text-sm">
        {all.map(([field, value]) => (
          <>
            <dt key={`${field} name`} class="text-muted">
              <Name text={field} />
            </dt>
            <dd key={`${field} value`} class="wrap-anywhere">
              {safeText(String(value))}
            </dd>
            <dd key={`${field} remove`} class="min-h-8">
              {mayEdit && (
                <Button
                  kind="quiet"
                  label={`Remove ${safeText(field)}`}
                  onPress={() => set({ [field]: null }, 'Field removed.')}
                >
                  Remove
                </Button>
              )}
            </dd>
          </>
        ))}
      </dl>
      {isAdding && (
        <NewField
          onLeave={() => setAdding(false)}
          onSet={async (field, value) => {
            await set({ [field]: value }, 'Field set.')
            setAdding(false)
          }}
        />
      )}
    </Panel>
  )
}

interface NewFieldProps {
  readonly onSet: (field: string, value: FieldValue) => Promise<void>
  readonly onLeave: () => void
}

function NewField({ onSet, onLeave }: NewFieldProps) {
  const [field, setField] = useState('')
  const [kind, setKind] = useState('text')
  const [text, setText] = useState('')
  const value = typedValue(kind, text)
  return (
    <div class="grid gap-2 border-t border-line pt-3">
      <Field label="Name" value={field} onInput={setField} />
      <Select label="Kind of value" value={kind} choices={kinds} onChange={setKind} />
      <Field
        label="Value"
        value={text}
        onInput={setText}
        mistake={value === undefined && text !== '' ? 'must be of that kind' : undefined}
      />
      <div class="flex gap-2">
        <Button
          kind="main"
          isDisabled={field === '' || value === undefined}
          onPress={() => (value === undefined ? undefined : onSet(field, value))}
        >
          Set
        </Button>
        <Button onPress={onLeave}>Cancel</Button>
      </div>
    </div>
  )
}

/** Undefined if the text is not of that kind. */
function typedValue(kind: string, text: string): FieldValue | undefined {
  if (kind === 'text') return text
  if (kind === 'boolean') return text === 'true' ? true : text === 'false' ? false : undefined
  const number = Number(text)
  return text.trim() === '' || !Number.isFinite(number) ? undefined : number
}
