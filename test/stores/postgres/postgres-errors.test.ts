import { describe, expect, it } from 'vitest'
import { postgresError, postgresFailure } from '#src/stores/postgres/client/postgres-errors.js'

const reply = (code: string) => Object.assign(new Error(`it said ${code}`), { code, severity: 'ERROR' })

describe('an error of a Postgres server', () => {
  it.each([
    ['40P01', 'again'],
    ['57014', 'again'],
    ['25006', 'elsewhere'],
    ['25P04', 'elsewhere'],
    ['57P01', 'in-doubt'],
    ['08006', 'in-doubt'],
    ['57P04', 'in-doubt'],
    ['58030', 'in-doubt'],
    ['XX000', 'in-doubt'],
    ['28P01', 'refused'],
    ['42501', 'refused'],
    ['53100', 'full'],
    ['53200', 'again'],
    ['3D000', 'unfit'],
    ['42883', 'corrupt'],
    ['XX001', 'corrupt'],
    ['0A000', 'corrupt'],
  ])('with the code %s means: %s', (code, failure) => {
    expect(postgresFailure(reply(code), true)).toBe(failure)
  })

  it.each([
    ['XX000', 'elsewhere'],
    ['58030', 'elsewhere'],
    ['0A000', 'elsewhere'],
    ['28P01', 'refused'],
    ['3D000', 'unfit'],
  ])('with the code %s while it connects means: %s', (code, failure) => {
    expect(postgresFailure(reply(code), false, true)).toBe(failure)
  })

  it('leaves a call in doubt only if the call may have left', () => {
    const cut = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })

    expect([postgresFailure(cut, true), postgresFailure(cut, false)]).toEqual(['in-doubt', 'elsewhere'])
    expect(postgresFailure(reply('57P01'), false)).toBe('elsewhere')
  })

  it.each([
    ['in-doubt', 'store-unavailable', true],
    ['again', 'store-unavailable', false],
    ['elsewhere', 'store-unavailable', false],
    ['full', 'store-full', undefined],
    ['refused', 'store-refused', undefined],
    ['corrupt', 'store-corrupt', undefined],
    ['unfit', 'config-invalid', undefined],
  ] as const)('that is classified as %s becomes %s', (failure, code, inDoubt) => {
    const error = postgresError('postgres://host:5432/shop', new Error('some words.'), failure)

    expect(error).toMatchObject({
      code,
      message: expect.stringMatching(/at postgres:\/\/host:5432\/shop .*some words/s),
    })
    expect((error as { inDoubt?: boolean }).inDoubt).toBe(inDoubt)
  })
})
