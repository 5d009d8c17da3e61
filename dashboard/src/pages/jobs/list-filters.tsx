/** The list filters: the task, the group, a field, the error and a text of the listed jobs, and their order; all are in the address. */

import { Select } from '../../parts/form-field.js'
import { filterList } from '../../state/cursor-pages.js'
import { query } from '../../state/page-address.js'
import { fieldIn } from '../../words/field-words.js'

const orders = [
  ['time', 'as they will run'],
  ['id', 'by id'],
  ['retry', 'failed ones, by attempts'],
] as const

const texts = [
  ['task', 'Task, then Enter', 'Only jobs of this task'],
  ['group', 'Group', 'Only jobs of this group'],
  ['field', 'Field=value', 'Only jobs with this value of a field, as order=4711'],
  ['error', 'Error', 'Only jobs with an error of this kind'],
  ['text', 'Text', 'Only jobs with this text in their id, task, group, fields or input'],
] as const

/** What a list shows of its jobs; absent: all of them. */
export type ShownFilter = { readonly [Name in (typeof texts)[number][0]]?: string }

/** The filter in the address. */
export function filterInAddress(): ShownFilter {
  const given = texts.map(([name]) => [name, query.value.get(name) ?? ''])
  return Object.fromEntries(given.filter(([, value]) => value !== ''))
}

export function isFiltered(filter: ShownFilter): boolean {
  return Object.keys(filter).length > 0
}

/** The filter as the API takes it in a query. A text that names no field is sent as it is, so that the answer says what is wrong. */
export function filterQuery({ field, ...texts }: ShownFilter): Readonly<Record<string, string>> {
  if (field === undefined) return texts
  const fields = fieldsIn(field)
  return { ...texts, fields: typeof fields === 'string' ? fields : JSON.stringify(fields) }
}

/** The same in a body. */
export function filterBody({ field, ...texts }: ShownFilter): Readonly<Record<string, unknown>> {
  return field === undefined ? texts : { ...texts, fields: fieldsIn(field) }
}

function fieldsIn(text: string): Readonly<Record<string, unknown>> | string {
  const field = fieldIn(text)
  return field === undefined ? text : { [field.name]: field.value }
}

interface FilterProps {
  readonly filter: ShownFilter
  readonly by: string
  /** Default: all of them. */
  readonly choices?: readonly (readonly [value: string, text: string])[]
}

export function ListFilters({ filter, by, choices = orders }: FilterProps) {
  return (
    <div class="flex flex-wrap items-center gap-2">
      {texts.map(([name, placeholder, label]) => (
        <TextFilter
          key={`${name} ${filter[name] ?? ''}`}
          name={name}
          placeholder={placeholder}
          label={label}
          value={filter[name] ?? ''}
        />
      ))}
      <Select
        label="Order"
        value={by}
        choices={choices}
        onChange={(value) => filterList({ by: value === 'time' ? undefined : value })}
      />
    </div>
  )
}

interface TextProps {
  readonly name: string
  readonly placeholder: string
  readonly label: string
  readonly value: string
}

/** A field that filters by its text, on Enter. */
function TextFilter({ name, placeholder, label, value }: TextProps) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        const text = String(new FormData(event.currentTarget).get(name)).trim()
        filterList({ [name]: text === '' ? undefined : text })
      }}
    >
      <input
        type="search"
        name={name}
        class={`field ${name === 'task' ? 'w-44' : 'w-32'}`}
        placeholder={placeholder}
        aria-label={label}
        {...(name === 'field' && { pattern: '[^=]+=.*', title: 'A field and its value, as order=4711' })}
        defaultValue={value}
        onChange={(event) => {
          // The cross of the field empties it.
          if (event.currentTarget.value === '') filterList({ [name]: undefined })
        }}
      />
    </form>
  )
}
