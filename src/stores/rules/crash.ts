/** The outcome of a crash: the next state of a job whose lease expired unsettled. The rule of every store. */

interface CrashedClaim {
  /** The claim was made alone: its worker held nothing else, so the job itself is to blame. */
  readonly alone: boolean
  readonly cancelRequested: boolean
  /** Crashes charged to the job before. */
  readonly crashes: number
}

interface CrashVerdict {
  /** Crashes charged to the job now. */
  readonly crashes: number
  /** `'suspect'`: ready in its old place, for claims made alone. */
  readonly becomes: 'suspect' | 'dead' | 'cancelled'
}

export function afterCrash({ alone, cancelRequested, crashes }: CrashedClaim, maxCrashes: number): CrashVerdict {
  const charged = alone ? crashes + 1 : crashes
  if (cancelRequested) return { crashes: charged, becomes: 'cancelled' }
  return { crashes: charged, becomes: alone && charged >= maxCrashes ? 'dead' : 'suspect' }
}
