/** A report: the lines that a proof prints while it runs, and the claims that decide it. */

/** Plain data that JSON can hold: the figures in one place, for comparisons of two runs. */
export type Summary = { readonly [key: string]: unknown }

export interface Proof {
  /** The first seed of the proof's random draws, or 0 if nothing is drawn. */
  readonly seed: number
  /** What of the proof this run is, if it is not all of it: its output has a file of its own, and no other part is lost. */
  readonly part?: string | undefined
  prove(report: Report): Summary | Promise<Summary>
}

export class Report {
  readonly lines: string[] = []
  readonly failed: string[] = []

  say(line: string): void {
    this.lines.push(line)
    console.log(line)
  }

  /** Prints whether the claim holds. One failed claim fails the whole proof. */
  claim(claim: string, holds: boolean): void {
    if (!holds) this.failed.push(claim)
    this.say(`${holds ? 'holds' : 'FAILS'}: ${claim}`)
  }
}
