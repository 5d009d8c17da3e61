/** The OpenAPI document and the page of the API, against the endpoints that there are. */

import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { openApiOf } from '#src/web/api/openapi.js'
import { endpoints } from '#src/web/api/router.js'
import { Document } from '../docs/document.js'
import { ask, WebScene } from './web-scene.js'

interface Operation {
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: object }[]
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: object } } }
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: object }>> }>
  >
}

const document = openApiOf(endpoints) as unknown as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: { readonly Failure: object } }
}
const operation = (path: string, method: string) => document.paths[path]![method]!
const ajv = new Ajv({ strict: false, validateFormats: false })

describe('the OpenAPI document', () => {
  it('has every endpoint, with its path parameters', () => {
    const told = Object.entries(document.paths).flatMap(([path, of]) =>
      Object.keys(of).map((method) => `${method} ${path}`),
    )

    expect(told.sort()).toEqual(
      endpoints.map(({ method, path }) => `${method.toLowerCase()} ${path.replace(/:(\w+)/g, '{$1}')}`).sort(),
    )
    expect(operation('/queues/{queue}/jobs/{id}', 'get').parameters.map((one) => [one.in, one.name])).toEqual([
      ['path', 'queue'],
      ['path', 'id'],
      ['query', 'id'],
    ])
    expect(
      operation('/queues/{queue}/jobs', 'get')
        .parameters.filter((one) => one.in === 'query')
        .map(({ name }) => name),
    ).toEqual(['state', 'by', 'task', 'group', 'error', 'text', 'from', 'to', 'fields', 'cursor', 'limit'])
  })

  it('has schemas that a validator accepts, and that agree with the checks', () => {
    for (const { parameters, requestBody, responses } of Object.values(document.paths).flatMap((of) =>
      Object.values(of),
    )) {
      for (const { schema } of parameters) expect(() => ajv.compile(schema)).not.toThrow()
      if (requestBody !== undefined)
        expect(() => ajv.compile(requestBody.content['application/json'].schema)).not.toThrow()
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['400', '401', '403', '421', '503']))
    }
    const bodyOf = (path: string) =>
      ajv.compile(operation(path, 'post').requestBody!.content['application/json'].schema)
    const job = bodyOf('/queues/{queue}/jobs')
    expect([job({ task: 'a', input: 1, delay: '5m' }), job({ jobs: [{ task: 'a' }] })]).toEqual([true, true])
    expect([job({}), job({ task: 'a', colour: 1 }), job({ jobs: [] }), job({ task: 'a', priority: 1.5 })]).toEqual([
      false,
      false,
      false,
      false,
    ])
    const choice = bodyOf('/queues/{queue}/jobs/cancel')
    expect([
      choice({ ids: ['a'] }),
      choice({ all: true, confirm: 'q' }),
      choice({ ids: [] }),
      choice({ ids: [1] }),
      choice({ where: { group: 'acme' }, confirm: 'q', cursor: 'ready/' }),
      choice({ where: { group: 'acme' } }),
    ]).toEqual([true, true, false, false, true, false])
  })

  it('is served by the web handler, only to those with access', async () => {
    const scene = await WebScene.on('sqlite')

    expect((await scene.get('openapi.json')).json).toEqual(JSON.parse(JSON.stringify(document)))
    expect((await ask(`${scene.url}/api/v1/openapi.json`)).status).toBe(401)
  })
})

it('the page on the API has every endpoint with its summary, and no other', () => {
  const rows = new Document('docs/http-api.md').rows('The addresses')

  expect(rows.map(([address, what]) => [address, what])).toEqual(
    endpoints.map(({ method, path, summary }) => [`\`${method} ${path.slice(1)}\``, summary]),
  )
})
