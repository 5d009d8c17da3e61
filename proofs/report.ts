/** A report: what a proof says while it runs, and the claims it stands or falls with. */

/** Plain data that JSON can hold: the figures in one place, for whoever compares two runs. */
export type Summary = { readonly [key: string]: unknown }

export interface Proof {
  /** The first seed of whatever the proof draws; 0 where it draws nothing. */
  readonly seed: number
  prove(report: Report): Summary | Promise<Summary>
}

export class Report {
  readonly lines: string[] = []
  readonly failed: string[] = []

  say(line: string): void {
    this.lines.push(line)
    console.log(line)
  }

  /** Says whether the claim holds; one that fails makes the whole proof fail. */
  claim(claim: string, holds: boolean): void {
    if (!holds) this.failed.push(claim)
    this.say(`${holds ? 'holds' : 'FAILS'}: ${claim}`)
  }
}
