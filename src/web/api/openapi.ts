/** The OpenAPI document: the API described from the shapes that it checks. */

import { packageVersion } from '../../core/platform/package-version.js'
import { type Endpoint, paramsOf } from './endpoint.js'
import { isOptional, type JsonSchema, jsonSchemaOf } from './json-schema.js'
import { failure, idInQuery, paramShapes } from './shapes.js'

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
