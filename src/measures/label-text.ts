/** The label text: the labels of a sample as both expositions write them, `queue="mail",state="dead"`. Pure. */

/** `given` has a value for each of the names. */
export function labelText(names: readonly string[], given: Readonly<Record<string, string>>): string {
  return names.map((name) => `${name}="${escapedText(given[name]!.toWellFormed())}"`).join(',')
}

export function escapedText(text: string): string {
  return text.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`))
}
