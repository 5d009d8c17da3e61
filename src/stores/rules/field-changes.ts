/**
 * Field changes: their effect on the fields of a job, and whether that is too much. The rule of every store; Lua has a
 * translation.
 */

import { areTooMany, type FieldChanges, type JobFields } from '../../core/job/job-fields.js'

/** The fields after these changes; undefined if they would be too many, or too large. */
export function changedFields(before: JobFields, changes: FieldChanges): JobFields | undefined {
  const kept = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== null)
  const fields = Object.fromEntries(kept) as JobFields
  return areTooMany(fields) ? undefined : fields
}
