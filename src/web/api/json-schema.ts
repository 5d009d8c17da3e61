/** The JSON Schema of a shape: the checks of a valibot schema, in the terms of OpenAPI. Pure. */

import type * as v from 'valibot'

export type JsonSchema = Readonly<Record<string, unknown>>

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

const optionals = new Set(['optional', 'exact_optional'])

export function jsonSchemaOf(schema: v.GenericSchema): JsonSchema {
  return schemaOf(schema as unknown as SchemaPart)
}

export function isOptional(schema: v.GenericSchema): boolean {
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
      return { ...schemaOf(part.wrapped!), ...(part.default === undefined ? {} : { default: part.default }) }
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
