/** The list filters: the task and the order of the listed jobs; both are in the address. */

import { Select } from '../../parts/form-field.js'
import { filterList } from '../../state/cursor-pages.js'

const orders = [
  ['time', 'in the order of work'],
  ['id', 'by id'],
  ['retry', 'failed ones, by attempts'],
] as const

interface FilterProps {
  readonly task: string
  readonly by: string
  /** Default: all three. */
  readonly choices?: readonly (readonly [value: string, text: string])[]
}

export function ListFilters({ task, by, choices = orders }: FilterProps) {
  return (
    <div class="flex flex-wrap items-center gap-2">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          filterList({ task: String(new FormData(event.currentTarget).get('task')).trim() })
        }}
      >
        <input
          key={task}
          type="search"
          name="task"
          class="field w-44"
          placeholder="Task, then Enter"
          aria-label="Only jobs of this task"
          defaultValue={task}
          onChange={(event) => {
            // The cross of the field empties it.
            if (event.currentTarget.value === '') filterList({ task: undefined })
          }}
        />
      </form>
      <Select
        label="Order"
        value={by}
        choices={choices}
        onChange={(value) => filterList({ by: value === 'time' ? undefined : value })}
      />
    </div>
  )
}
