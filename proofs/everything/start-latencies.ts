/** The latencies of starts since they were last asked for: a histogram whose classes are an eighth of an octave wide. */

const classesPerOctave = 8
const leastMs = 0.1

export class StartLatencies {
  #classes: number[] = []
  #count = 0

  add(ms: number): void {
    const index = Math.max(0, Math.ceil(Math.log2(ms / leastMs) * classesPerOctave))
    this.#classes[index] = (this.#classes[index] ?? 0) + 1
    this.#count += 1
  }

  /** The latencies in ms below which these shares of all lie, 0 … 1. Begins anew. */
  take(shares: readonly number[]): number[] {
    const [classes, count] = [this.#classes, this.#count]
    this.#classes = []
    this.#count = 0
    return shares.map((share) => below(classes, share * count))
  }
}

function below(classes: readonly number[], wanted: number): number {
  let seen = 0
  for (let index = 0; index < classes.length; index += 1) {
    seen += classes[index] ?? 0
    if (seen >= wanted) return leastMs * 2 ** (index / classesPerOctave)
  }
  return Number.NaN
}
