/** The dead job table: dead jobs of a queue; chosen ones can be revived or deleted. */

import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { JobRow } from '../../api/answers.js'
import { mayChange } from '../../api/session-state.js'
import { DataTable } from '../../parts/data-table.js'
import { SelectionBar } from '../../parts/page-turner.js'
import { Button } from '../../parts/press-button.js'
import { useSelection } from '../../state/row-selection.js'
import { columnsFor } from '../jobs/job-columns.js'
import { askForDead } from './morgue-acts.js'

interface DeadProps {
  readonly queue: string
  readonly rows: readonly JobRow[] | undefined
  readonly error: Error | undefined
  readonly onRetry: () => void
  readonly done: () => unknown
  /** Another page has other rows: none of them is chosen. */
  readonly pageKey: string
  readonly empty: ComponentChildren
}

export function DeadJobTable({ queue, rows, error, onRetry, done, pageKey, empty }: DeadProps) {
  const selection = useSelection()
  useEffect(() => selection.set([]), [pageKey])
  const chosen = rows?.filter(({ id }) => selection.keys.has(id)).map(({ id }) => id) ?? []
  const asking = {
    queue,
    done: () => {
      selection.set([])
      return done()
    },
  }
  const mayAct = mayChange.value
  return (
    <>
      {mayAct && (
        <SelectionBar selection={selection}>
          <Button kind="main" onPress={() => askForDead('revive', chosen, asking)}>
            Revive
          </Button>
          <Button kind="danger" onPress={() => askForDead('delete', chosen, asking)}>
            Delete
          </Button>
        </SelectionBar>
      )}
      <DataTable
        label={`Dead jobs of ${queue}`}
        columns={columnsFor('dead', false)}
        rows={rows}
        keyOf={idOf}
        error={error}
        onRetry={onRetry}
        {...(mayAct && { selection })}
        empty={empty}
      />
    </>
  )
}

function idOf({ id }: JobRow): string {
  return id
}
