/** Typed JSON: what somebody typed as JSON, sent as it is: `JSON.parse` would make another number of 1234567890123456789. Pure. */

export class TypedJson {
  readonly text: string

  /** Throws `SyntaxError` if the text is not JSON. */
  constructor(text: string) {
    JSON.parse(text)
    this.text = text
  }
}

/** The body of a request as JSON. Its own parts may be typed JSON. */
export function bodyText(body: object): string {
  const parts = Object.entries(body).filter(([, part]) => part !== undefined)
  const texts = parts.map(([name, part]) => {
    return `${JSON.stringify(name)}:${part instanceof TypedJson ? part.text : JSON.stringify(part)}`
  })
  return `{${texts.join(',')}}`
}
