/**
 * Field changes: their effect on the fields of a job, and whether that is too much. The rule of every store; Lua has a
 * translation.
 */

import { type FieldChanges, type JobFields, mostFieldBytes, mostFields } from '../../core/job/job-fields.js'

/** The fields after these changes; undefined if they would be too many, or too large. */
export function changedFields(before: JobFields, changes: FieldChanges): JobFields | undefined {
  const all = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== null)
  const bytes = all.reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(JSON.stringify(value)), 0)
  return all.length > mostFields || bytes > mostFieldBytes ? undefined : (Object.fromEntries(all) as JobFields)
}
