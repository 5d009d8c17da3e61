/** Chi-square: how likely counts as far from the expected ones as these are, if chance alone made them. */

/** Pearson's statistic over cells that all have an expected count above 0. */
export function chiSquare(observed: readonly number[], expected: readonly number[]): number {
  return observed.reduce((sum, count, i) => sum + (count - expected[i]!) ** 2 / expected[i]!, 0)
}

/** The statistic for two samples of equal size: whether one and the same source made both. Cells empty in both are left out. */
export function chiSquareOfTwo(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, count, i) => (count + b[i]! === 0 ? sum : sum + (count - b[i]!) ** 2 / (count + b[i]!)), 0)
}

/** P(χ² ≥ statistic) with so many degrees of freedom: the regularised upper incomplete gamma function Q(k/2, χ²/2). */
export function pValue(statistic: number, degrees: number): number {
  return upperGamma(degrees / 2, statistic / 2)
}

/** Q(a, x) for whole and half a, by Q(a + 1, x) = Q(a, x) + xᵃ e⁻ˣ / Γ(a + 1) from Q(1, x) = e⁻ˣ or Q(½, x) = erfc(√x). */
function upperGamma(a: number, x: number): number {
  let order = Number.isInteger(a) ? 1 : 0.5
  let q = order === 1 ? Math.exp(-x) : erfc(Math.sqrt(x))
  // xᵃ e⁻ˣ / Γ(a + 1) for a = order.
  let term = order === 1 ? x * Math.exp(-x) : 2 * Math.sqrt(x / Math.PI) * Math.exp(-x)
  for (; order < a; order += 1) {
    q += term
    term *= x / (order + 1)
  }
  return q
}

/** For z ≥ 0: the series of erf for small z, the continued fraction of erfc above. (Abramowitz & Stegun 7.1.6, 7.1.14.) */
function erfc(z: number): number {
  if (z < 3) {
    let term = z
    let sum = z
    for (let n = 1; n < 200; n += 1) {
      term *= (2 * z * z) / (2 * n + 1)
      sum += term
    }
    return 1 - (2 / Math.sqrt(Math.PI)) * Math.exp(-z * z) * sum
  }
  let fraction = z
  for (let n = 60; n >= 1; n -= 1) fraction = z + n / 2 / fraction
  return Math.exp(-z * z) / Math.sqrt(Math.PI) / fraction
}
