/** The names of a schedule's jobs: of a tick by its instant, and of a run out of turn by a name of its own. Pure. */

/** The name of a tick. */
export function tickName(schedule: string, at: number): string {
  return `${schedule}@${new Date(at).toISOString().replace('.000Z', 'Z')}`
}

/** The name of a run out of turn. `unique`: different for each. */
export function runName(schedule: string, unique: string): string {
  return `${schedule}@run-${unique}`
}

/** The instant of the tick that a job of this schedule is named after; undefined for one out of turn. */
export function tickAtOf(id: string, schedule: string): number | undefined {
  // A number may follow, which keeps the job in the shard of its schedule.
  const [instant = ''] = /^[^Z]*Z/.exec(id.slice(schedule.length + 1)) ?? []
  const at = id.startsWith(`${schedule}@`) ? Date.parse(instant) : Number.NaN
  return Number.isNaN(at) ? undefined : at
}
