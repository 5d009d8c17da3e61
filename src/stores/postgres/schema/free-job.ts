/** Whether a waiting job is free to be taken, or somebody has locked it: a transaction of a user that replaces it may stay open for long. */

import { sqlFunction } from './sql-function.js'

/**
 * Of a row of `job` that waits. One that nobody has locked since it was written has no `xmax`, and the transaction that another names is
 * mostly over: these cost nothing. Others are tried. Where `xmax` names several transactions, none of them takes the row away. Users'
 * transactions lock no ids of ordered queues, whose pushes lock them shortly.
 */
export const isFree =
  '(xmax = 0 OR head IS NOT NULL OR age(xmax) > age(pg_snapshot_xmin(pg_current_snapshot())::xid) OR @.is_free_1(ctid))'

/**
 * Takes the place of a row of `job`. Returns whether nobody else has locked it for an end, or takes it away. Claims lock less, so none passes
 * over a row that is tried.
 */
const tryJob = sqlFunction(
  'is_free_1',
  'p_at tid',
  'boolean',
  `BEGIN
  PERFORM FROM @.job WHERE ctid = p_at FOR KEY SHARE SKIP LOCKED;
  RETURN FOUND;
END`,
)

export const freeJobFunctions = [tryJob]
