/** The field words: a field of a job with its value as one text, `order=4711`, as a filter takes it and a list shows it. Pure. */

export type FieldValue = string | number | boolean

/** `order=4711`; a text that would be read as another value is in quotes: `order="4711"`. */
export function fieldText(name: string, value: FieldValue): string {
  const isPlain = typeof value === 'string' && valueIn(value) === value
  return `${name}=${isPlain ? value : JSON.stringify(value)}`
}

/** The field in a text; undefined if there is none: its name ends at the first `=`. */
export function fieldIn(text: string): { readonly name: string; readonly value: FieldValue } | undefined {
  const end = text.indexOf('=')
  return end < 1 ? undefined : { name: text.slice(0, end), value: valueIn(text.slice(end + 1)) }
}

/** JSON of a text, a number or a boolean; otherwise the text itself. */
function valueIn(text: string): FieldValue {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'string' || typeof value === 'boolean') return value
    // A number that JSON would round keeps its digits as a text.
    return typeof value === 'number' && (Number.isSafeInteger(value) || !Number.isInteger(value)) ? value : text
  } catch {
    return text
  }
}
