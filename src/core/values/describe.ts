/** The description of a value for messages: short, for any value. */

const longest = 80

export function describe(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return shortened(JSON.stringify(value))
    case 'bigint':
      return shortened(`${value}n`)
    case 'function':
      return 'a function'
    case 'object':
      return value === null ? 'null' : tagOf(value)
    default:
      return shortened(String(value))
  }
}

/** The thrown value in words: an error's message, or the value itself. */
export function messageOf(error: unknown): string {
  try {
    if (error instanceof Error) return String(error.message)
  } catch {
    // A user's getter or proxy threw: the value is described below.
  }
  return describe(error)
}

function shortened(text: string): string {
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}

function tagOf(value: object): string {
  try {
    return shortened(Object.prototype.toString.call(value))
  } catch {
    return 'an object that cannot be shown'
  }
}
