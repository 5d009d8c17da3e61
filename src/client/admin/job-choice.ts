/** The choice of a job by its id, as a caller gives it. */

import { InvalidArgumentError } from '../../core/errors.js'
import { idMistake, isJobId, orderedIdOf } from '../../core/values/ids.js'

/** The id in its stored form. Only ordered jobs may have a number. Throws `InvalidArgumentError`. */
export function checkedId(given: unknown, isOrdered: boolean): string {
  const id = isOrdered ? orderedIdOf(given) : given
  if (isJobId(id)) return id
  throw new InvalidArgumentError(`a job id ${idMistake(given, isOrdered)}`)
}
