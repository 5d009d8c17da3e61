/** The API fuzz: calls drawn from the OpenAPI document and around it, and what must hold of every answer. */

import { Ajv, type ValidateFunction } from 'ajv'
import fc from 'fast-check'
import { ask } from './ask.js'

type Json = Readonly<Record<string, unknown>>

interface Operation {
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly schema: Json
  }[]
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: Json } } }
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: Json }>> }>
  >
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: { readonly Failure: Json } }
}

export interface FuzzCall {
  readonly method: string
  /** Below the API, with its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly raw?: string
}

/** Texts that have broken others: markup, paths, prototypes, controls, lone surrogates, what looks like a number. */
const hostile = [
  '',
  ' ',
  '0',
  '-1',
  '1e999',
  'NaN',
  '__proto__',
  'constructor',
  '../../etc/passwd',
  '%2e%2e',
  '<script>alert(1)</script>',
  '"',
  "'; drop table jobs; --",
  '\u0000',
  '\ud800',
  '\u202e',
  '{',
  '{ns:q}',
  'x'.repeat(300),
  'mail',
  'orders',
  'ключ',
] as const
/** What is there, so that calls also reach something. */
const known: Readonly<Record<string, readonly string[]>> = {
  queue: ['mail', 'mail', 'mail', 'orders', 'orders', 'crawl', 'nowhere'],
  name: ['nightly', 'none'],
  id: ['m1', 'm2', 'm3', 'o1', 'd1', 'none'],
}
const anyJson = fc.oneof(
  { weight: 3, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(...hostile) },
  { weight: 1, arbitrary: fc.integer({ min: 2, max: 150 }).map(nested) },
)

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let i = 0; i < depth; i += 1) value = i % 2 === 0 ? [value] : { a: value }
  return value
}

/** Values of the schema. */
function drawnBy(schema: Json, name = ''): fc.Arbitrary<unknown> {
  const {
    type,
    properties = {},
    required = [],
    items,
    anyOf,
    oneOf,
    minimum = 0,
    maximum = 2_000,
  } = schema as {
    readonly [K in 'type']?: string
  } & {
    readonly properties?: Readonly<Record<string, Json>>
    readonly required?: string[]
    readonly items?: Json
    readonly anyOf?: Json[]
    readonly oneOf?: Json[]
    readonly minimum?: number
    readonly maximum?: number
  }
  if ('const' in schema) return fc.constant(schema['const'])
  if ('enum' in schema) return fc.constantFrom(...(schema['enum'] as unknown[]))
  const forms = anyOf ?? oneOf
  if (forms !== undefined) return fc.oneof(...forms.map((form) => drawnBy(form, name)))
  const names = known[name === 'ids' ? 'id' : name === 'to' || name === 'confirm' ? 'queue' : name]
  switch (type) {
    case 'string':
      if (name === 'task') return fc.constantFrom('send-mail', 'send-mail', 'sync-order', 'crawl-page', 'unknown')
      if (name === 'delay' || name === 'window' || name === 'expiresIn') return fc.constantFrom('5m', '1h', '0s')
      if (schema['format'] === 'date-time')
        return fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }).map((at) => at.toISOString())
      return names === undefined ? fc.string({ unit: 'grapheme', maxLength: 40 }) : fc.constantFrom(...names)
    case 'integer':
      // Hundreds of shards would take their time, and show nothing more.
      return fc.integer({ min: minimum, max: name === 'shards' ? 6 : maximum })
    case 'number':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(drawnBy(items ?? {}, name), { minLength: 1, maxLength: 4 })
    case 'object': {
      if (Object.keys(properties).length === 0)
        return fc.dictionary(fc.string({ maxLength: 8 }), drawnBy((schema['additionalProperties'] as Json) || {}))
      const fields = Object.fromEntries(Object.entries(properties).map(([key, of]) => [key, drawnBy(of, key)]))
      const least = Object.fromEntries(Object.entries(fields).filter(([key]) => required.includes(key)))
      return fc.oneof(fc.record(least), fc.record(fields, { requiredKeys: required }))
    }
    default:
      return anyJson
  }
}

const text = (value: unknown) => encodeURIComponent(String(value).toWellFormed())

function callsOf(path: string, method: string, { parameters, requestBody }: Operation): fc.Arbitrary<FuzzCall> {
  const given = parameters.filter((one) => one.in === 'path')
  const asked = parameters.filter((one) => one.in === 'query')
  const inPath = fc.record(
    Object.fromEntries(
      given.map(({ name, schema }) => [name, mostly(drawnBy(schema, name), fc.constantFrom<unknown>(...hostile))]),
    ),
  )
  const inQuery = fc.record(
    Object.fromEntries(
      asked.map(({ name, schema }) => [name, mostly(drawnBy(schema, name), fc.constantFrom<unknown>(...hostile))]),
    ),
    { requiredKeys: [] },
  )
  const strange = mostly(fc.constant(''), fc.constantFrom('&days=7', '&limit=1&limit=2', '&__proto__=1', '&cursor=%00'))
  const body =
    requestBody === undefined
      ? fc.constant(undefined)
      : mostly(drawnBy(requestBody.content['application/json'].schema), anyJson)
  const raw = body.chain((value) =>
    mostly(
      fc.constant(value === undefined ? undefined : JSON.stringify(value)),
      fc.constantFrom('', '{', 'null', '[]', `{"a":${'['.repeat(9_000)}`, '{"__proto__":{"all":true}}'),
    ),
  )
  const headers = mostly(
    fc.constant<Record<string, string>>({ 'x-millrace': '1' }),
    fc.constantFrom<Record<string, string>>(
      {},
      { 'x-millrace': '2' },
      { 'x-millrace': '1', origin: 'https://evil.example' },
      { 'x-millrace': '1', 'content-type': 'text/plain' },
      { 'x-millrace': '1', host: 'evil.example' },
    ),
  )
  return fc.record({ inPath, inQuery, strange, raw, headers }).map((drawn) => {
    // An id in the query counts where the path leaves its place to it.
    const named =
      'id' in drawn.inPath && drawn.inQuery['id'] !== undefined ? { ...drawn.inPath, id: '~' } : drawn.inPath
    const target = path.replace(/\{(\w+)\}/g, (_, name: string) => text(named[name as keyof typeof named]))
    const query = Object.entries(drawn.inQuery).map(([name, value]) => `${name}=${text(value)}`)
    const isSent = method !== 'get'
    // Mostly it is the right name that confirms an action.
    const raw = drawn.raw?.replace(/"confirm":"(?:mail|orders)"/, `"confirm":${JSON.stringify(drawn.inPath['queue'])}`)
    return {
      method: method.toUpperCase(),
      path: `${target.slice(1)}?${query.join('&')}${drawn.strange}`.replace(/\?$/, ''),
      headers:
        method === 'get' && drawn.headers['x-millrace'] !== undefined
          ? { ...drawn.headers, 'x-millrace': '1' }
          : drawn.headers,
      ...(isSent && raw !== undefined && { raw }),
    }
  })
}

function mostly<T>(usual: fc.Arbitrary<T>, rare: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: rare })
}

/** The same calls for the same seed. Log-ins and streams are not among them. */
export function fuzzCalls({ paths }: OpenApi, count: number, seed: number): FuzzCall[] {
  const operations = Object.entries(paths)
    .filter(([path]) => path !== '/session' && !path.endsWith('/events'))
    .flatMap(([path, of]) => Object.entries(of).map(([method, operation]) => callsOf(path, method, operation)))
  return fc.sample(fc.oneof(...operations), { numRuns: count, seed })
}

export interface FuzzFindings {
  readonly wrong: readonly string[]
  /** How many answers had each status. */
  readonly statuses: Readonly<Record<number, number>>
}

/** Sends one after the other. Wrong is an answer of 500 and more, one that is no JSON, and an error of another shape. */
export async function fuzz(
  url: string,
  { components }: OpenApi,
  calls: readonly FuzzCall[],
  more: Readonly<Record<string, string>>,
): Promise<FuzzFindings> {
  const isFailure = new Ajv({ strict: false }).compile(components.schemas.Failure)
  const wrong: string[] = []
  const statuses: Record<number, number> = {}
  for (const { method, path, headers, raw } of calls) {
    const answer = await ask(`${url}/api/v1/${path}`, {
      method,
      headers: { ...more, ...headers },
      ...(raw !== undefined && { raw }),
    })
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1
    const problem = problemOf(answer.status, answer.text, isFailure)
    if (problem !== undefined)
      wrong.push(
        `${method} ${path} ${raw?.slice(0, 200) ?? ''}: ${answer.status} ${problem}: ${answer.text.slice(0, 300)}`,
      )
  }
  return { wrong, statuses }
}

function problemOf(status: number, body: string, isFailure: ValidateFunction): string | undefined {
  if (status >= 500) return 'is an error of ours'
  try {
    const json: unknown = JSON.parse(body)
    if (status >= 400 && !isFailure(json)) return 'is an error of another shape'
    return /\bat .*\.[jt]s:\d+/.test(body) ? 'shows a stack' : undefined
  } catch {
    return 'is no JSON'
  }
}
