/** The kind of an error: its first line without what differs each time, such as ids and numbers. Pure. */

const longest = 300

/** The parts that differ from error to error, the longest forms first: UUIDs, hex numbers, words with digits, numbers. */
const differing = [
  /\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/gi,
  /\b0x[\da-f]+\b/gi,
  /\b(?=[\w-]*\d)(?=[\w-]*[a-z_-])[\w-]{6,}\b/gi,
  /\d+(?:[.,:]\d+)*/g,
]

/**
 * The first line of an error, at most 300 characters, with `#` for each id and number: errors of one kind have one text.
 *
 * @example
 * errorKind('Error: order 4711 of 3f2a9c7e is gone') // 'Error: order # of # is gone'
 */
export function errorKind(error: string): string {
  const [first = ''] = error.slice(0, 4 * longest).split('\n', 1)
  return differing
    .reduce((text, form) => text.replaceAll(form, '#'), first)
    .slice(0, longest)
    .toWellFormed()
}
