/**
 * The job address: the path of a job in the API and of its page. Both have the same form, whatever characters the id
 * has.
 */

import { at, queryText } from './api-path.js'

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

/** `tail`: the part after the id, such as `/cancel`. */
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
