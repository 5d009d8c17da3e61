/** The OpenAPI document: the API described from the shapes that it checks. */

import type * as v from 'valibot'
import { packageVersion } from '../../core/package-files.js'
import { defined } from '../../core/values/defined.js'
import { type Endpoint, paramsOf } from './endpoint.js'
import { failure, idInQuery, paramShapes } from './shapes.js'

type JsonSchema = Readonly<Record<string, unknown>>

const optionals = new Set(['optional', 'exact_optional'])

/** The failures that each endpoint may answer. */
const failures: Readonly<Record<string, string>> = {
  400: 'The request has a mistake; `fields` says where',
  401: 'The viewer is unknown',
  403: 'The viewer may not do this, or another page may have sent the request',
  421: 'The window does not answer under this host',
  422: 'The store cannot do this',
  503: 'The store is away; try again',
}
const failuresOfChange: Readonly<Record<string, string>> = {
  409: 'The state of a job or queue does not allow this',
  413: 'The body is larger than 1 MiB, or a payload is larger than the mill allows',
  415: 'The body is not JSON',
  429: 'The queue is full, or too many wrong tokens came from here',
}

export function openApiOf(endpoints: readonly Endpoint[]): JsonSchema {
  const paths: Record<string, Record<string, JsonSchema>> = {}
  for (const one of endpoints) {
    const path = one.path.replace(/:(\w+)/g, '{$1}')
    paths[path] ??= {}
    paths[path][one.method.toLowerCase()] = operationOf(one)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Millrace',
      version: packageVersion() ?? 'unknown',
      description: 'Jobs, queues, workers and schedules of one mill. Instants are ISO 8601, durations milliseconds.',
    },
    servers: [{ url: '.' }],
    security: [{ bearer: [] }, { session: [] }],
    paths,
    components: {
      schemas: { Failure: jsonSchemaOf(failure) },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        // The name is the window's, as `POST session` sets it.
        session: { type: 'apiKey', in: 'cookie', name: 'millrace-window' },
      },
    },
  }
}

const idParameter = {
  name: 'id',
  in: 'query',
  required: false,
  description: `The id, where the path has '${idInQuery}' in its place`,
  schema: jsonSchemaOf(paramShapes['id']!),
}

function operationOf({
  method,
  path,
  summary,
  query = {},
  body,
  answer,
  status = 200,
  isStream,
  isOpen,
}: Endpoint): JsonSchema {
  const inPath = paramsOf(path).map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: jsonSchemaOf(paramShapes[name]!),
  }))
  const inQuery = Object.entries(query).map(([name, shape]) => ({
    name,
    in: 'query',
    required: !isOptional(shape),
    schema: jsonSchemaOf(shape),
  }))
  const elsewhere = inPath.some(({ name }) => name === 'id') ? [idParameter] : []
  const isChange = method !== 'GET'
  const header = { name: 'x-millrace', in: 'header', required: true, schema: { const: '1' } }
  const content = isStream
    ? { 'text/event-stream': { schema: { type: 'string' } } }
    : { 'application/json': { schema: answer ? jsonSchemaOf(answer) : { type: 'object' } } }
  return {
    summary,
    parameters: [...inPath, ...elsewhere, ...inQuery, ...(isChange ? [header] : [])],
    ...(body !== undefined && {
      requestBody: { required: true, content: { 'application/json': { schema: jsonSchemaOf(body) } } },
    }),
    ...(isOpen && { security: [] }),
    responses: {
      [status]: { description: 'Done', content },
      ...responsesOf(failures),
      ...(inPath.length > 0 && responsesOf({ 404: 'It does not exist' })),
      ...(isChange && responsesOf(failuresOfChange)),
    },
  }
}

function responsesOf(described: Readonly<Record<string, string>>): JsonSchema {
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Failure' } } }
  return Object.fromEntries(
    Object.entries(described).map(([status, description]) => [status, { description, content }]),
  )
}

/** A schema as valibot builds it, with the parts that are read here. */
interface SchemaPart {
  readonly type: string
  readonly pipe?: readonly SchemaPart[]
  readonly wrapped?: SchemaPart
  readonly entries?: Readonly<Record<string, SchemaPart>>
  readonly rest?: SchemaPart
  readonly item?: SchemaPart
  readonly value?: SchemaPart
  readonly options?: readonly unknown[]
  readonly literal?: unknown
  readonly default?: unknown
  readonly requirement?: unknown
  readonly metadata?: { readonly json?: JsonSchema; readonly anyOf?: readonly v.GenericSchema[] }
}

/** The JSON Schema of a shape: the checks of a valibot schema, in the terms of OpenAPI. Pure. */
function jsonSchemaOf(schema: v.GenericSchema): JsonSchema {
  return schemaOf(schema as unknown as SchemaPart)
}

function isOptional(schema: v.GenericSchema): boolean {
  return optionals.has(schema.type)
}

function schemaOf(part: SchemaPart): JsonSchema {
  const steps = part.pipe ?? [part]
  const told = steps.find(({ metadata }) => metadata !== undefined)?.metadata
  if (told?.json !== undefined) return told.json
  if (told?.anyOf !== undefined) return { anyOf: told.anyOf.map((one) => jsonSchemaOf(one)) }
  return Object.assign(
    {},
    ...steps.map((step) => (step === part || step.pipe === undefined ? ownSchema(step) : schemaOf(step))),
  )
}

function ownSchema(part: SchemaPart): JsonSchema {
  const { requirement } = part
  switch (part.type) {
    case 'string':
    case 'number':
    case 'boolean':
      return { type: part.type }
    case 'integer':
      return { type: 'integer' }
    case 'min_value':
      return { minimum: requirement }
    case 'max_value':
      return { maximum: requirement }
    case 'min_length':
      return part.item === undefined ? { minLength: requirement, minItems: requirement } : {}
    case 'max_length':
      return { maxLength: requirement, maxItems: requirement }
    case 'picklist':
      return { enum: part.options }
    case 'literal':
      return { const: part.literal }
    case 'array':
      return { type: 'array', items: schemaOf(part.item!) }
    case 'record':
      return { type: 'object', additionalProperties: schemaOf(part.value!) }
    case 'union':
      return { anyOf: part.options!.map((one) => schemaOf(one as SchemaPart)) }
    case 'nullable':
      return { anyOf: [schemaOf(part.wrapped!), { type: 'null' }] }
    case 'optional':
    case 'exact_optional':
      return { ...schemaOf(part.wrapped!), ...defined({ default: part.default }) }
    case 'object':
    case 'loose_object':
    case 'object_with_rest':
      return objectSchema(part)
    default:
      return {}
  }
}

function objectSchema({ entries = {}, rest }: SchemaPart): JsonSchema {
  const names = Object.keys(entries)
  const required = names.filter((name) => !optionals.has(entries[name]!.type))
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, schemaOf(entries[name]!)])),
    ...(required.length > 0 && { required }),
    additionalProperties: rest === undefined,
  }
}
