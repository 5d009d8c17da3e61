/** A field of a cron text: its range, and the mistake in it, in the words of the text and not in those of a parser. */

interface FieldForm {
  readonly name: string
  readonly from: number
  readonly to: number
  /** The names that stand for its numbers. */
  readonly words?: readonly string[]
}

const months = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const weekdays = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

/** The fields of a text of six; one of five has no first. */
export const fieldForms: readonly FieldForm[] = [
  { name: 'second', from: 0, to: 59 },
  { name: 'minute', from: 0, to: 59 },
  { name: 'hour', from: 0, to: 23 },
  { name: 'day of month', from: 1, to: 31 },
  { name: 'month', from: 1, to: 12, words: months },
  { name: 'day of week', from: 0, to: 7, words: weekdays },
]

/** The mistake in a field, as far as it is a usual one; undefined if there is none of these. */
export function fieldMistake(field: string, form: FieldForm): string | undefined {
  if (field.includes('?') && !form.name.startsWith('day'))
    return "'?' may stand only for a day. Of six fields the first is the second; EventBridge has the year as its last, which must be left out"
  if (field.includes('?') && field !== '?') return "'?' must stand alone; a step needs '*'"
  for (const item of field.split(',')) {
    const mistake = itemMistake(item, form)
    if (mistake !== undefined) return mistake
  }
  return undefined
}

function itemMistake(item: string, form: FieldForm): string | undefined {
  if (item === '') return 'a list has something on both sides of each comma'
  const [range = '', step, ...more] = item.split('/')
  if (more.length > 0) return `'${item}' has two steps`
  // Sunday is both 0 and 7.
  const mostStep = form.to === 7 ? 7 : form.to - form.from + 1
  if (step !== undefined && !(/^\d+$/.test(step) && Number(step) >= 1 && Number(step) <= mostStep))
    return `the step '${step}' must be a whole number from 1 to ${mostStep}`
  if (step !== undefined && /^\w+$/.test(range))
    return `a step needs a range before it: '*/${step}', or '${range}-${form.to}/${step}' to begin at ${range}`
  const [low = '', high, ...rest] = range.split('-')
  if (range.startsWith('-')) return `'${item}' is below the least, ${form.from}`
  if (rest.length > 0) return `'${range}' has two ends too many`
  for (const value of high === undefined ? [low] : [low, high]) {
    const mistake = valueMistake(value, form)
    if (mistake !== undefined) return mistake
  }
  const [least, most] = [numberOf(low, form), numberOf(high ?? '', form)]
  // A week may end on Sunday, by name or as 0.
  if (least !== undefined && most !== undefined && least > most && !(form.to === 7 && most === 0))
    return `the range '${range}' ends before it begins`
  return undefined
}

/** Only of plain numbers and words: `L`, `W` and `#` are left to the reader of the whole text. */
function valueMistake(value: string, form: FieldForm): string | undefined {
  const { name, from, to, words } = form
  if (/^\d+$/.test(value) && (Number(value) < from || Number(value) > to))
    return `${value} is no ${name}; it is a number from ${from} to ${to}${words === undefined ? '' : `, or ${words[0]} to ${words.at(-1)}`}`
  const isWord = /^[a-z]{2,}$/i.test(value) && value.toUpperCase() !== 'LW'
  if (isWord && numberOf(value, form) === undefined)
    return `'${value}' is no ${name}; it is a number from ${from} to ${to}${words === undefined ? '' : `, or one of ${words.join(', ')}`}`
  return undefined
}

function numberOf(value: string, { words }: FieldForm): number | undefined {
  if (/^\d+$/.test(value)) return Number(value)
  const index = words?.indexOf(value.toUpperCase()) ?? -1
  return index === -1 ? undefined : index
}
