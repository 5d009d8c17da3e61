/** The API path: addresses below the window, of the API and of pages, whatever characters names and ids have. */

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

/** Other ids are kept out of paths: a path cannot contain `..`, and some proxies rewrite others. */
const fitsInPath = /^\w[\w.:@-]*$/
/** Replaces in the path an id that is in the query. */
const inQuery = '~'

export interface JobName {
  readonly queue: string
  readonly id: string
  /** `morgue`: the dead job, which in an ordered queue may exist next to a live one. Default `jobs`. */
  readonly part?: 'jobs' | 'morgue'
}

/** The path of a job, in the API and of its page. `tail`: the part after the id, such as `/cancel`. */
export function jobAddress({ queue, id, part = 'jobs' }: JobName, tail = ''): string {
  const isPlain = fitsInPath.test(id) && id !== 'errors'
  const place = at`${queue}/${part}/${isPlain ? id : inQuery}`
  return `queues/${place}${tail}${isPlain ? '' : queryText({ id })}`
}

/** The page of a job. */
export function jobPage({ queue, id, part = 'jobs' }: JobName): string {
  const page = jobAddress({ queue, id })
  return part === 'jobs' ? page : `${page}${page.includes('?') ? '&' : '?'}part=${part}`
}

/** The job in an address, from the part of its path and from its query. */
export function jobNamed(queue: string, inPath: string, query: URLSearchParams): JobName {
  const id = inPath === inQuery ? (query.get('id') ?? inQuery) : inPath
  return { queue, id, part: query.get('part') === 'morgue' ? 'morgue' : 'jobs' }
}
