/** The API path: an address below the window that contains names and ids, whatever characters those have. */

/** The root of all addresses, wherever a proxy has put the window. */
export const windowRoot = new URL('.', document.baseURI).href

/** at`queues/${queue}/jobs/${id}`: for API calls and links alike, relative to the window. */
export function at(texts: TemplateStringsArray, ...names: readonly string[]): string {
  return texts.reduce((path, text, i) => path + encodeURIComponent(names[i - 1] ?? '') + text)
}

/** The query with its `?`; empty if no value is given. */
export function queryText(values: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== '')
  return given.length === 0 ? '' : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`
}

export function apiAddress(path: string): string {
  return `${windowRoot}api/v1/${path}`
}
