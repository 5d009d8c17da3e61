/** The job address: where the API has a job, and where its page is; the same below each of the two, whatever signs the id has. */

import { at, queryText } from './api-path.js'

/** The rest is kept out of paths: `..` cannot stand in one, and some proxies rewrite others. */
const fitsInPath = /^\w[\w.:@-]*$/
/** What stands in the place of an id that the query has. */
const inQuery = '~'

export interface JobName {
  readonly queue: string
  readonly id: string
  /** `morgue`: the dead one, of an ordered queue also beside a live one. Default `jobs`. */
  readonly part?: 'jobs' | 'morgue'
}

/** `tail`: what follows the id, as `/cancel`. */
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

/** The job that an address names, by the part of its path and by its query. */
export function jobNamed(queue: string, inPath: string, query: URLSearchParams): JobName {
  const id = inPath === inQuery ? (query.get('id') ?? inQuery) : inPath
  return { queue, id, part: query.get('part') === 'morgue' ? 'morgue' : 'jobs' }
}
