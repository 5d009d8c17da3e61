/** Schemas: every library that speaks Standard Schema is taken, at once or later. */
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { InvalidJobError } from '#src/core/errors.js'
import { isSchema, type Schema, type SchemaIssue, validated } from '#src/core/task/schema.js'

const schemas: [string, Schema<unknown, unknown>][] = [
  ['zod', z.object({ user: z.object({ age: z.number() }) }) as Schema<unknown, unknown>],
  ['valibot', v.object({ user: v.object({ age: v.number() }) }) as Schema<unknown, unknown>],
  ['arktype', type({ user: { age: 'number' } }) as unknown as Schema<unknown, unknown>],
]

/** A schema that refuses everything with these issues. */
function refusing(...issues: SchemaIssue[]): Schema {
  return { '~standard': { version: 1, vendor: 'test', validate: () => ({ issues }) } }
}

describe.each(schemas)('a schema of %s', (_, schema) => {
  it('is recognised, passes valid input on and refuses the rest with its path', async () => {
    expect(isSchema(schema)).toBe(true)
    expect(await validated(schema, { user: { age: 5 } }, 'input')).toEqual({ user: { age: 5 } })

    const refused = validated(schema, { user: { age: 'old' } }, "input of task 'x'")
    await expect(refused).rejects.toThrow(InvalidJobError)
    await expect(refused).rejects.toThrow(/^input of task 'x' does not match its schema:\n {2}user\.age: ./)
  })
})

describe('validated', () => {
  it('returns the output of the schema', async () => {
    const schema = z.object({ at: z.coerce.date(), n: z.number().default(3) }) as unknown as Schema
    expect(await validated(schema, { at: '2026-01-01' }, 'input')).toEqual({ at: new Date('2026-01-01'), n: 3 })
  })

  it('waits for an asynchronous schema', async () => {
    const schema = z.string().refine(async (text) => text !== 'taken', 'is taken') as unknown as Schema

    expect(await validated(schema, 'free', 'input')).toBe('free')
    await expect(validated(schema, 'taken', 'input')).rejects.toThrow('  (input): is taken')
  })

  it('waits for a foreign promise', async () => {
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what is being tested
    const answer = { then: (resolve: (result: unknown) => void) => resolve({ issues: [{ message: 'no' }] }) }
    const schema = { '~standard': { version: 1, vendor: 'test', validate: () => answer } } as unknown as Schema

    await expect(validated(schema, 1, 'input')).rejects.toThrow('(input): no')
  })

  it('writes paths of keys, indices, symbols and segments', async () => {
    const schema = refusing(
      { message: 'first', path: ['items', 0, { key: 'name' }] },
      { message: 'second', path: [Symbol('s')] },
      { message: 'third', path: [] },
    )

    await expect(validated(schema, 1, 'input')).rejects.toThrow(
      'input does not match its schema:\n  items.0.name: first\n  Symbol(s): second\n  (input): third',
    )
  })

  it('lists twenty issues and counts the others', async () => {
    const schema = refusing(...Array.from({ length: 23 }, (_, i) => ({ message: `issue ${i}` })))

    await expect(validated(schema, 1, 'input')).rejects.toThrow(/issue 19\n {2}… and 3 more$/)
  })
})

describe('isSchema', () => {
  it.each([
    [null],
    [undefined],
    ['string'],
    [{}],
    [() => true],
    [{ '~standard': null }],
    [{ '~standard': { version: 2, validate: () => 1 } }],
    [{ '~standard': { version: 1 } }],
  ])('is false for %o', (value) => {
    expect(isSchema(value)).toBe(false)
  })
})
